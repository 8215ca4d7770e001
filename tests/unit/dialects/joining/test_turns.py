"""Several turns in one trace: each has its question and answer, and those of the trace are the last turn's."""

import json
from typing import Any

import pytest

from evaluators.model import Trace
from tests.support.conventions import AGENT, CHAT, answered, asked, call, said
from tests.support.dialect_spans import SpanSpec, trace_of

TURNS = [("hi", "hello"), ("what is 3+4?", "7"), ("and 5+5?", "10")]


def model(
    number: int,
    at: int,
    sent: str,
    answer: str,
    *,
    system: str | None = None,
    parent: int | None = None,
) -> SpanSpec:
    attributes: dict[str, Any] = {
        **CHAT,
        "gen_ai.input.messages": sent,
        "gen_ai.output.messages": answer,
    }
    if system is not None:
        part = {"type": "text", "content": system}
        attributes["gen_ai.system_instructions"] = json.dumps([part])
    above = number - 1 if parent is None else parent
    return SpanSpec(
        id=number, parent=above, attributes=attributes, start=at + 1, end=at + 8, name="chat"
    )


def request(number: int, at: int, *, parent: int = 0, end: int = 9) -> SpanSpec:
    return SpanSpec(id=number, parent=parent, name="gateway.request", start=at, end=at + end)


def exchanged(trace: Trace) -> list[tuple[str | None, str | None]]:
    return [(turn.input, turn.output) for turn in trace.turns]


@pytest.mark.parametrize("parent", [0, 999])
def test_requests_at_the_top_of_a_trace_are_its_turns(parent: int) -> None:
    """A chat under one trace id, whose own span went elsewhere or never was."""
    spans = [
        span
        for number, (question, answer) in enumerate(TURNS)
        for span in (
            request(10 * number + 1, 100 * number, parent=parent),
            model(10 * number + 2, 100 * number, asked(question), said(answer)),
        )
    ]
    trace = trace_of(*spans)

    assert (trace.input, trace.output) == TURNS[-1]
    assert exchanged(trace) == TURNS
    assert [turn.span_id for turn in trace.turns] == [f"{10 * n + 1:016x}" for n in range(3)]


def test_model_calls_at_the_top_are_turns_where_a_user_spoke_last() -> None:
    lookup = call("lookup", "c1", q="x")
    trace = trace_of(
        model(1, 0, asked("one?"), said("", lookup), parent=0),
        model(
            2,
            20,
            _joined(asked("one?"), said("", lookup), answered("c1", "1")),
            said("It is 1."),
            parent=0,
        ),
        model(3, 40, asked("one?", "two?"), said("It is 2."), parent=0),
    )

    assert (trace.input, trace.output) == ("two?", "It is 2.")
    assert exchanged(trace) == [("one?", "It is 1."), ("two?", "It is 2.")]


def test_what_a_gateway_leaves_of_one_turn_is_one_turn() -> None:
    lookup = call("lookup", "c1", q="x")
    trace = trace_of(
        request(1, 0),
        model(2, 0, asked("one?"), said("", lookup)),
        request(3, 20),
        model(
            4, 20, _joined(asked("one?"), said("", lookup), answered("c1", "1")), said("It is 1.")
        ),
    )

    assert (trace.input, trace.output, trace.turns) == ("one?", "It is 1.", ())


def test_steps_of_an_agent_whose_own_span_never_came_are_one_turn() -> None:
    """It was killed: each step's span holds the whole conversation, the question at its beginning."""
    lookup = call("lookup", "c1", q="x")
    later = _joined(asked("one?"), said("", lookup), answered("c1", "1"))
    trace = trace_of(
        *(
            span
            for number, sent, answer in (
                (1, asked("one?"), said("", lookup)),
                (3, later, said("It is 1.")),
            )
            for span in (
                SpanSpec(
                    id=number,
                    parent=999,
                    name="model",
                    attributes={"openinference.span.kind": "CHAIN", "input.value": "one?"},
                    start=10 * number,
                    end=10 * number + 9,
                ),
                model(number + 1, 10 * number, sent, answer),
            )
        )
    )

    assert (trace.input, trace.output, trace.turns) == ("one?", "It is 1.", ())


@pytest.mark.parametrize(
    "changed",
    [
        [request(3, 4), model(4, 4, asked("Plan: a, b"), said("Done."))],
        [request(3, 20), model(4, 20, asked("Plan: a, b"), said("Done."), system="You work.")],
    ],
    ids=["at the same time", "under another system prompt"],
)
def test_requests_of_one_turn_are_none_of_their_own(changed: list[SpanSpec]) -> None:
    """A planner and its worker, or two at once."""
    first = [request(1, 0), model(2, 0, asked("Do it."), said("Plan: a, b"), system="You plan.")]

    assert trace_of(*first, *changed).turns == ()


def test_agents_at_the_top_are_turns_with_what_they_say_themselves() -> None:
    """The words of the run go before those that its model was sent."""
    spans = [
        span
        for number, (question, answer) in enumerate(TURNS)
        for span in (
            SpanSpec(
                id=10 * number + 1,
                attributes={
                    **AGENT,
                    "gen_ai.agent.name": "calc",
                    "gen_ai.input.messages": asked(question),
                    "gen_ai.output.messages": said(answer),
                },
                start=100 * number,
                end=100 * number + 9,
            ),
            model(
                10 * number + 2, 100 * number, asked(f"Task: {question}"), said("final_answer()")
            ),
        )
    ]
    beside = trace_of(*spans)
    below = trace_of(
        SpanSpec(id=99, name="run experiment", end=999),
        *(_under(99, span) if not span.parent else span for span in spans),
    )

    for trace in (beside, below):
        assert (trace.input, trace.output) == TURNS[-1]
        assert exchanged(trace) == TURNS


def _under(parent: int, span: SpanSpec) -> SpanSpec:
    return SpanSpec(
        id=span.id, parent=parent, attributes=span.attributes, start=span.start, end=span.end
    )


def _joined(*messages: str) -> str:
    return json.dumps([each for several in messages for each in json.loads(several)])
