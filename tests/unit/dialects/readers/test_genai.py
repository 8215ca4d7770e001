"""The GenAI conventions, in their versions and as vendors write them."""

import pytest

from evaluators.model import Trace
from tests.support.conventions import CHAT, ROOT, asks, says
from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.openai_messages import CALL
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, compact, dump, one_call
from tests.support.whole_traces import (
    PARTS_CALL,
    PROMPT,
    SCHEMA,
    assert_whole_turn,
    flattened,
    usages,
)


def test_tool_spans_that_state_an_error_without_a_status() -> None:
    for attributes in ({"tool.status": "error"}, {"error.type": "ExecutionError"}):
        named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
        trace = trace_of({**named, **attributes})
        assert one_call(trace).error


def test_an_mcp_call_seen_by_client_and_server_is_one_call() -> None:
    said = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "get_weather",
        "mcp.session.id": "m1",
        "jsonrpc.request.id": "7",
    }
    content = dump({"content": [{"type": "text", "text": RESULT}], "isError": False})
    trace = trace_of(
        {NAME: "agent"},
        {
            NAME: "execute_tool get_weather",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": dump(ARGUMENTS),
            "gen_ai.tool.call.result": RESULT,
        },
        SpanSpec(id=3, parent=2, name="tools/call get_weather", start=2, end=7, attributes=said),
        SpanSpec(
            id=4,
            parent=3,
            name="tools/call get_weather",
            start=3,
            end=6,
            attributes={**said, "gen_ai.tool.call.result": content},
        ),
        {NAME: "tools/list", "mcp.method.name": "tools/list"},
    )

    call = one_call(trace)
    assert (call.name, call.id, call.arguments, call.result) == (
        "get_weather",
        "c1",
        ARGUMENTS,
        RESULT,
    )


def test_an_mcp_result_loses_its_envelope_and_says_when_it_failed() -> None:
    for failed in (False, True):
        result = dump({"content": [{"type": "text", "text": RESULT}], "isError": failed})
        tool = SpanSpec(
            id=2,
            parent=1,
            name="tools/call get_weather",
            attributes={
                "mcp.method.name": "tools/call",
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.arguments": dump(ARGUMENTS),
                "gen_ai.tool.call.result": result,
            },
        )

        call = one_call(trace_of({}, tool))

        assert (call.result, call.error) == (RESULT, RESULT if failed else None)


def anthropic(**usage: int) -> Trace:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        **{f"gen_ai.usage.{key.replace('__', '.')}": count for key, count in usage.items()},
    }
    return trace_of(attributes)


def test_anthropics_input_is_what_its_api_says_however_the_instrumentation_counts() -> None:
    inclusive = anthropic(input_tokens=132, cache_read__input_tokens=8, cache_write__input_tokens=4)
    exclusive = anthropic(input_tokens=12, cache_read__input_tokens=8_000)
    silent = anthropic(input_tokens=132)

    assert inclusive.tokens.input == 120
    assert exclusive.tokens.input == 12
    assert silent.tokens.input == 132


def test_google_wrote_every_parameter_by_itself() -> None:
    trace = trace_of(
        {
            NAME: "execute_tool get_weather",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "code.function.name": "get_weather",
            "code.function.parameters.city.type": "str",
            "code.function.parameters.city.value": "Paris",
            "code.function.return.type": "str",
            "code.function.return.value": RESULT,
        }
    )

    call = one_call(trace)
    assert (call.arguments, call.result) == (ARGUMENTS, RESULT)


@pytest.mark.parametrize(
    ("response", "error"), [({"error": "too slow"}, "too slow"), ({"result": RESULT}, None)]
)
def test_a_function_response_of_an_error(response: dict[str, str], error: str | None) -> None:
    part = {"type": "tool_call_response", "id": "c1", "response": response}
    trace = trace_of(
        ROOT,
        {**CHAT, "gen_ai.output.messages": asks("c1")},
        {
            **CHAT,
            "gen_ai.input.messages": dump([{"role": "user", "parts": [part]}]),
            "gen_ai.output.messages": says(),
        },
    )

    assert one_call(trace).error == error


def test_a_whole_trace_of_genai() -> None:
    one, two = usages("gen_ai.usage.", "input_tokens", "output_tokens")
    asked = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
    common = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-4o-mini"}
    common["gen_ai.tool.definitions"] = dump(
        [{"type": "function", "name": "get_weather", "parameters": SCHEMA}]
    )
    assert_whole_turn(
        scope="any",
        root={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "helper",
            **{k: v * 2 for k, v in one.items()},
        },
        first={
            **common,
            **one,
            "gen_ai.system_instructions": dump([{"type": "text", "content": "Be brief."}]),
            "gen_ai.input.messages": dump(asked),
            "gen_ai.output.messages": dump([{"role": "assistant", "parts": [PARTS_CALL]}]),
        },
        tool={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "get_weather",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": dump(ARGUMENTS),
            "gen_ai.tool.call.result": RESULT,
        },
        last={
            **common,
            **two,
            "gen_ai.output.messages": dump(
                [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
            ),
        },
    )


def test_a_whole_trace_of_anthropic_blocks() -> None:
    """OpenLLMetry for Anthropic: content is a JSON list of blocks inside the flattened key."""
    one, two = usages("gen_ai.usage.", "prompt_tokens", "completion_tokens")
    common = {"llm.request.type": "chat", "gen_ai.request.model": "claude-sonnet-4-5"}
    functions = {
        "llm.request.functions.0.name": "get_weather",
        "llm.request.functions.0.input_schema": dump(SCHEMA),
    }
    block = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": ARGUMENTS}
    result = {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [{"type": "text", "text": RESULT}],
    }
    history = [
        *PROMPT,
        {"role": "assistant", "content": dump([block])},
        {"role": "user", "content": dump([result])},
    ]
    call = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert_whole_turn(
        scope="opentelemetry.instrumentation.anthropic",
        root={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"},
        first={
            **common,
            **functions,
            **one,
            **flattened("gen_ai.prompt", PROMPT),
            **flattened("gen_ai.completion", [call]),
        },
        tool={},
        last={
            **common,
            **two,
            **flattened("gen_ai.prompt", history),
            **flattened("gen_ai.completion", [{"role": "assistant", "content": ANSWER}]),
        },
    )


def test_sentry_writes_an_answers_texts_and_calls_apart() -> None:
    call = {"id": "c1", "function": {"name": "get_weather", "arguments": compact(ARGUMENTS)}}
    asks = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": compact([{"role": "user", "content": QUESTION}]),
        "gen_ai.response.text": compact([""]),
        "gen_ai.response.tool_calls": compact([call]),
    }
    says = {"gen_ai.operation.name": "chat", "gen_ai.response.text": ANSWER}

    trace = trace_of({}, asks, says)

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    assert [(c.name, c.arguments) for c in trace.tool_calls] == [("get_weather", ARGUMENTS)]


def test_the_agent_of_a_step_is_the_one_it_names() -> None:
    step = {"gen_ai.operation.name": "agent_step", "gen_ai.agent.name": "clerk"}

    assert trace_of({NAME: "step 1", **step}).agent == "clerk"
