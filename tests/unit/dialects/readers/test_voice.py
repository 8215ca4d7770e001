"""Pipecat and LiveKit Agents."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.dialect_spans import SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call

TOOLS = dump([{"type": "function", "function": {"name": "get_weather", "parameters": {}}}])
CALL = {"id": "c1", "type": "function"} | {
    "function": {"name": "get_weather", "arguments": dump(ARGUMENTS)}
}


def llm(number: int, messages: list[dict[str, Any]], **more: Any) -> SpanSpec:
    given = {"gen_ai.operation.name": "chat", "input": dump(messages), "tools": TOOLS, **more}
    return SpanSpec(
        id=number,
        parent=1,
        name="llm",
        scope="pipecat",
        attributes=given,
        start=number * 10,
        end=number * 10 + 5,
    )


def test_pipecat_has_calls_in_the_messages_of_the_next_call() -> None:
    asked = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]
    told = [
        *asked,
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": RESULT},
    ]
    trace = trace_of(
        SpanSpec(
            id=1,
            name="conversation",
            scope="pipecat.turn",
            attributes={"conversation.id": "s-1", "conversation.type": "voice"},
            end=99,
        ),
        llm(2, asked),
        llm(3, told, output=ANSWER),
    )

    assert (trace.input, trace.output, trace.session_id) == (QUESTION, ANSWER, "s-1")
    assert trace.dialects == ("pipecat",)
    assert [tool.name for tool in trace.tools_offered] == ["get_weather"]
    call = one_call(trace)
    assert (call.id, call.arguments, call.result) == ("c1", ARGUMENTS, RESULT)


def test_pipecat_has_spans_for_the_tools_of_a_model_that_speaks() -> None:
    given = {
        "gen_ai.operation.name": "llm_tool_call",
        "tool.function_name": "get_weather",
        "tool.call_id": "c1",
        "tool.arguments": dump(ARGUMENTS),
        "tool.result": RESULT,
        "tool.result_status": "error",
    }
    call = one_call(
        trace_of(SpanSpec(id=1, name="llm_tool_call", scope="pipecat", attributes=given))
    )
    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert call.error == RESULT


@pytest.mark.parametrize("pii", ["", "pii."])
@pytest.mark.parametrize("failed", [False, True])
def test_livekit_names_tools_by_keys_of_its_own(pii: str, failed: bool) -> None:
    trace = trace_of(
        SpanSpec(
            id=1,
            name="agent_turn",
            scope="livekit-agents",
            attributes={f"lk.{pii}user_input": QUESTION, f"lk.{pii}response.text": ANSWER},
            end=99,
        ),
        SpanSpec(
            id=2,
            parent=1,
            name="function_tool",
            scope="livekit-agents",
            attributes={
                "lk.function_tool.id": "c1",
                "lk.function_tool.name": "get_weather",
                f"lk.{pii}function_tool.arguments": dump(ARGUMENTS),
                f"lk.{pii}function_tool.output": RESULT,
                "lk.function_tool.is_error": failed,
            },
        ),
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.id, call.name, call.arguments) == ("c1", "get_weather", ARGUMENTS)
    assert call.result == RESULT
    assert (call.error is not None) is failed
