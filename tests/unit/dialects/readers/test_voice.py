"""Pipecat and LiveKit Agents."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.dialect_spans import NAME, SpanSpec, trace_of
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call

INVOKED = {"gen_ai.operation.name": "invoke_agent"}
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
    sent = [
        *asked,
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": RESULT},
    ]
    trace = trace_of(
        {NAME: "conversation", "conversation.id": "s-1", "conversation.type": "voice"},
        llm(2, asked),
        llm(3, sent, output=ANSWER),
        scope="pipecat.turn",
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
    call = one_call(trace_of({NAME: "llm_tool_call", **given}, scope="pipecat"))
    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert call.error == RESULT


@pytest.mark.parametrize("pii", ["", "pii."])
@pytest.mark.parametrize("failed", [False, True])
def test_livekit_names_tools_by_keys_of_its_own(pii: str, failed: bool) -> None:
    trace = trace_of(
        {NAME: "agent_turn", f"lk.{pii}user_input": QUESTION, f"lk.{pii}response.text": ANSWER},
        {
            NAME: "function_tool",
            "lk.function_tool.id": "c1",
            "lk.function_tool.name": "get_weather",
            f"lk.{pii}function_tool.arguments": dump(ARGUMENTS),
            f"lk.{pii}function_tool.output": RESULT,
            "lk.function_tool.is_error": failed,
        },
        scope="livekit-agents",
    )

    assert (trace.input, trace.output) == (QUESTION, ANSWER)
    call = one_call(trace)
    assert (call.id, call.name, call.arguments) == ("c1", "get_weather", ARGUMENTS)
    assert call.result == RESULT
    assert (call.error is not None) is failed


def conversation(*said: tuple[str, str]) -> list[SpanSpec]:
    """Of Pipecat, a turn for each question and answer."""
    spans = [SpanSpec(id=1, name="conversation", scope="pipecat.turn", end=999)]
    asked: list[dict[str, Any]] = []
    for number, (question, answer) in enumerate(said, start=1):
        turn = SpanSpec(
            id=number * 10,
            parent=1,
            name="turn",
            scope="pipecat.turn",
            attributes={"turn.number": number},
            start=number * 100,
            end=number * 100 + 90,
        )
        asked.append({"role": "user", "content": question})
        call = replace(llm(number * 10 + 1, [*asked], output=answer), parent=number * 10)
        asked.append({"role": "assistant", "content": answer})
        spans += [turn, call]
    return spans


def test_a_conversation_that_is_one_trace_has_its_turns() -> None:
    trace = trace_of(*conversation((QUESTION, ANSWER), ("And in Rome?", "Rain.")))

    assert [(turn.input, turn.output) for turn in trace.turns] == [
        (QUESTION, ANSWER),
        ("And in Rome?", "Rain."),
    ]
    assert (trace.input, trace.output) == (QUESTION, "Rain.")
    assert trace_of(*conversation((QUESTION, ANSWER))).turns == ()


def test_it_is_the_same_conversation_where_the_span_around_it_never_came() -> None:
    said = (QUESTION, ANSWER), ("And in Rome?", "Rain.")
    trace = trace_of(*conversation(*said)[1:])

    assert [(turn.input, turn.output) for turn in trace.turns] == [*said]
    assert (trace.input, trace.output) == (QUESTION, "Rain.")


def test_of_many_turns_the_newest_are_kept() -> None:
    trace = trace_of(*conversation(*((f"question {n}", "x" * 9_000) for n in range(50))))

    assert [turn.input for turn in trace.turns] == [f"question {n}" for n in range(18, 50)]
    assert {len(turn.output or "") for turn in trace.turns} == {8192}


@pytest.mark.parametrize("pii", ["", "pii."])
def test_livekit_goes_on_in_a_turn_of_the_same_speech(pii: str) -> None:
    def turn(number: int, speech: str, answer: str) -> list[SpanSpec]:
        given = {"lk.speech_id": speech, f"lk.{pii}user_input": f"question {speech}"}
        said = dump([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}])
        call = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": said}
        return [
            SpanSpec(id=number, parent=1, name="agent_turn", attributes={**given, **INVOKED}),
            SpanSpec(id=number + 1, parent=number, attributes=call, start=number, end=number),
        ]

    spans = [*turn(10, "a", "Let me look."), *turn(20, "a", ANSWER), *turn(30, "b", "Bye.")]
    trace = trace_of(
        *(
            replace(each, scope="livekit-agents")
            for each in (SpanSpec(id=1, name="agent_session", end=99), *spans)
        )
    )

    assert [turn.output for turn in trace.turns] == [ANSWER, "Bye."]
