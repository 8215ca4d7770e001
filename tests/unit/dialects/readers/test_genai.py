"""The GenAI conventions, in their versions and as vendors write them."""

from typing import Any

from tests.support.conventions import CHAT, HELPER, ROOT, asked, asks, says, tool
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.openai_messages import CALL
from tests.support.table import for_each
from tests.support.weather import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RESULT,
    SAID,
    USER,
    compact,
    dump,
    one_call,
)
from tests.support.whole_traces import PROMPT, SCHEMA, assert_whole_turn, flattened, usages


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


def test_google_wrote_every_parameter_by_itself() -> None:
    code = {
        "function.name": "get_weather",
        "function.parameters.city.type": "str",
        "function.parameters.city.value": "Paris",
        "function.return.type": "str",
        "function.return.value": RESULT,
    }

    call = one_call(
        trace_of({NAME: "execute_tool get_weather", **tool(), **under("code.", **code)})
    )

    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)


@for_each("response,error", [({"error": "too slow"}, "too slow"), ({"result": RESULT}, None)])
def test_a_function_response_of_an_error(response: dict[str, str], error: str | None) -> None:
    part = {"type": "tool_call_response", "id": "c1", "response": response}
    sent = dump([{"role": "user", "parts": [part]}])
    last = {"gen_ai.input.messages": sent, "gen_ai.output.messages": says()}

    trace = trace_of(ROOT, {**CHAT, "gen_ai.output.messages": asks("c1")}, {**CHAT, **last})

    assert one_call(trace).error == error


def test_a_whole_trace_of_genai() -> None:
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    definition = {"type": "function", "name": "get_weather", "parameters": SCHEMA}
    common = {
        **CHAT,
        "gen_ai.response.model": "gpt-4o-mini",
        "gen_ai.tool.definitions": dump([definition]),
    }
    assert_whole_turn(
        scope="any",
        root={**HELPER, **{key: count * 2 for key, count in one.items()}},
        first={
            **common,
            **one,
            "gen_ai.system_instructions": dump([{"type": "text", "content": "Be brief."}]),
            "gen_ai.input.messages": asked(QUESTION),
            "gen_ai.output.messages": asks("c1"),
        },
        tool=tool("get_weather", "c1", dump(ARGUMENTS), RESULT),
        last={**common, **two, "gen_ai.output.messages": says()},
    )


def test_a_whole_trace_of_anthropic_blocks() -> None:
    """OpenLLMetry for Anthropic: content is a JSON list of blocks inside the flattened key."""

    def model(counts: dict[str, int], sent: list[Any], said: dict[str, Any]) -> dict[str, Any]:
        return {
            "llm.request.type": "chat",
            "gen_ai.request.model": "claude-sonnet-4-5",
            "llm.request.functions.0.name": "get_weather",
            "llm.request.functions.0.input_schema": dump(SCHEMA),
            **counts,
            **flattened("gen_ai.prompt", sent),
            **flattened("gen_ai.completion", [said]),
        }

    one, two = usages("gen_ai.usage.", "prompt_tokens", "completion_tokens")
    block = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": ARGUMENTS}
    text = [{"type": "text", "text": RESULT}]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": text}
    history = [
        *PROMPT,
        {"role": "assistant", "content": dump([block])},
        {"role": "user", "content": dump([result])},
    ]
    assert_whole_turn(
        scope="opentelemetry.instrumentation.anthropic",
        root=HELPER,
        first=model(one, PROMPT, {"role": "assistant", "content": "", "tool_calls": [CALL]}),
        tool={},
        last=model(two, history, SAID),
    )


def test_sentry_writes_an_answers_texts_and_calls_apart() -> None:
    call = {"id": "c1", "function": {"name": "get_weather", "arguments": compact(ARGUMENTS)}}
    requested = {
        **CHAT,
        "gen_ai.input.messages": compact([USER]),
        "gen_ai.response.text": compact([""]),
        "gen_ai.response.tool_calls": compact([call]),
    }

    trace = trace_of({}, requested, {**CHAT, "gen_ai.response.text": ANSWER})

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert [(c.name, c.arguments) for c in trace.tool_calls] == [("get_weather", ARGUMENTS)]


def test_the_agent_of_a_step_is_the_one_it_names() -> None:
    step = {"gen_ai.operation.name": "agent_step", "gen_ai.agent.name": "clerk"}

    assert trace_of({NAME: "step 1", **step}).agent == "clerk"
