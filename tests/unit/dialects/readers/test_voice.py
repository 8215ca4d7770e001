"""Pipecat and LiveKit Agents."""

from typing import Any

from evaluators.model import Trace
from tests.support.conventions import AGENT, CHAT, says
from tests.support.dialect_spans import NAME, SpanSpec, trace_of, under
from tests.support.table import for_each
from tests.support.weather import ANSWER, ARGUMENTS, QUESTION, RESULT, dump, one_call

TOOLS = dump([{"type": "function", "function": {"name": "get_weather", "parameters": {}}}])


def llm(messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {NAME: "llm", **CHAT, "input": dump(messages), "tools": TOOLS, **more}


def test_pipecat_has_spans_for_the_tools_of_a_model_that_speaks() -> None:
    own = {"arguments": dump(ARGUMENTS), "result": RESULT, "result_status": "error"}
    tool = under("tool.", function_name="get_weather", call_id="c1", **own)
    operation = {NAME: "llm_tool_call", "gen_ai.operation.name": "llm_tool_call"}

    call = one_call(trace_of({**operation, **tool}, scope="pipecat"))

    assert (call.name, call.id, call.arguments) == ("get_weather", "c1", ARGUMENTS)
    assert call.error == RESULT


def within(number: int, parent: int, given: dict[str, Any], end: int = 0) -> SpanSpec:
    own = {key: value for key, value in given.items() if key != NAME}
    start = number * 10
    end = end or start + 5
    place: dict[str, Any] = {"id": number, "parent": parent, "start": start, "end": end}
    return SpanSpec(name=given[NAME], attributes=own, scope="pipecat.turn", **place)


AROUND = SpanSpec(id=1, name="conversation", scope="pipecat.turn", end=9_999)


def conversation(*said: tuple[str, str]) -> list[SpanSpec]:
    """Of Pipecat, a turn for each question and answer."""
    spans: list[SpanSpec] = []
    asked: list[dict[str, Any]] = []
    for number, (question, answer) in enumerate(said, start=1):
        turn = {NAME: "turn", "turn.number": number}
        asked.append({"role": "user", "content": question})
        spans.append(within(number * 10, 1, turn, number * 100 + 90))
        spans.append(within(number * 10 + 1, number * 10, llm(asked, output=answer)))
        asked.append({"role": "assistant", "content": answer})
    return spans


SAID = ((QUESTION, ANSWER), ("And in Rome?", "Rain."))


@for_each("around", [[AROUND], []])
def test_a_conversation_that_is_one_trace_has_its_turns_also_without_the_span_around_it(
    around: list[SpanSpec],
) -> None:
    trace = trace_of(*around, *conversation(*SAID))

    assert [(turn.input, turn.output) for turn in trace.turns] == [*SAID]
    assert (trace.input, trace.output) == (QUESTION, "Rain.")


def test_a_conversation_of_one_turn_is_not_told_by_turns() -> None:
    assert trace_of(AROUND, *conversation(SAID[0])).turns == ()


def test_of_many_turns_the_newest_are_kept() -> None:
    trace = trace_of(AROUND, *conversation(*((f"question {n}", "x" * 9_000) for n in range(50))))

    assert [turn.input for turn in trace.turns] == [f"question {n}" for n in range(18, 50)]
    assert {len(turn.output or "") for turn in trace.turns} == {8192}


@for_each("pii", ["", "pii."])
def test_livekit_goes_on_in_a_turn_of_the_same_speech(pii: str) -> None:
    def turn(number: int, speech: str, answer: str) -> list[SpanSpec]:
        given = under("lk.", speech_id=speech, **{f"{pii}user_input": f"question {speech}"})
        call = {**CHAT, "gen_ai.output.messages": says(answer)}
        scope = "livekit-agents"
        return [
            SpanSpec(id=number, parent=1, name="agent_turn", attributes=given | AGENT, scope=scope),
            SpanSpec(id=number + 1, parent=number, attributes=call, start=number, scope=scope),
        ]

    session = SpanSpec(name="agent_session")
    spans = [*turn(10, "a", "Let me look."), *turn(20, "a", ANSWER), *turn(30, "b", "Bye.")]
    trace: Trace = trace_of(session, *spans, scope="livekit-agents")

    assert [turn.output for turn in trace.turns] == [ANSWER, "Bye."]
