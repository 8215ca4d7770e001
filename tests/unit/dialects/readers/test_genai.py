"""The GenAI conventions, in their versions and as vendors write them."""

from tests.support.conventions import CHAT, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.table import for_each
from tests.support.weather import (
    ARGUMENTS,
    RESULT,
    dump,
    one_call,
)


@for_each("mark", [{"tool.status": "error"}, {"error.type": "ExecutionError"}])
def test_tool_spans_that_state_an_error_without_a_status(mark: dict[str, str]) -> None:
    assert one_call(trace_of(tool(**mark))).error


def test_an_mcp_call_seen_by_client_and_server_is_one_call() -> None:
    name = "tools/call get_weather"
    sent = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "get_weather",
        "mcp.session.id": "m1",
        "jsonrpc.request.id": "7",
    }
    content = dump({"content": [{"type": "text", "text": RESULT}], "isError": False})
    served = {**sent, "gen_ai.tool.call.result": content}
    trace = trace_of(
        {NAME: "agent"},
        {NAME: "execute_tool get_weather", **tool("get_weather", "c1", dump(ARGUMENTS), RESULT)},
        SpanSpec(parent=2, name=name, start=2, end=7, attributes=sent),
        SpanSpec(parent=3, name=name, start=3, end=6, attributes=served),
        {NAME: "tools/list", "mcp.method.name": "tools/list"},
    )

    call = one_call(trace)
    assert (call.name, call.id) == ("get_weather", "c1")
    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)


@for_each("failed", [False, True])
def test_an_mcp_result_loses_its_envelope_and_says_when_it_failed(failed: bool) -> None:
    result = dump({"content": [{"type": "text", "text": RESULT}], "isError": failed})
    called = tool("get_weather", None, dump(ARGUMENTS), result)
    method = {NAME: "tools/call get_weather", "mcp.method.name": "tools/call"}

    call = one_call(trace_of({}, {**method, **called}))

    assert (call.result, call.error) == (RESULT, RESULT if failed else None)


@for_each(
    "usage,given",
    [
        # the instrumentation counts what was cached among the input, or apart from it, or not
        ({"input": 132, "cache_read__input": 8, "cache_write__input": 4}, 120),
        ({"input": 12, "cache_read__input": 8_000}, 12),
        ({"input": 132}, 132),
    ],
)
def test_anthropics_input_is_what_its_api_says_however_the_instrumentation_counts(
    usage: dict[str, int], given: int
) -> None:
    counts = under("gen_ai.usage.", **{f"{key}_tokens": count for key, count in usage.items()})
    trace = trace_of({**CHAT, "gen_ai.provider.name": "anthropic", **counts})

    assert trace.tokens.input == given


def test_the_agent_of_a_step_is_the_one_it_names() -> None:
    step = {"gen_ai.operation.name": "agent_step", "gen_ai.agent.name": "clerk"}

    assert trace_of({NAME: "step 1", **step}).agent == "clerk"
