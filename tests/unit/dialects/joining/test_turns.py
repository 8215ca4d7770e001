"""The root, the service and the agent of a trace, and several turns in one trace."""

import json
from dataclasses import replace

from evaluators.dialects.read import read_trace
from evaluators.model import Trace
from tests.support import conventions
from tests.support.conventions import AGENT, answered, asked, call, made, model, ran, said
from tests.support.dialect_spans import TRACE_ID, SpanSpec, request, span_id, trace_of
from tests.support.table import for_each

REMOTE = 0x300


@for_each(
    "spans,root",
    [
        ([SpanSpec(id=1, start=5), SpanSpec(id=2, parent=1, start=1)], ("parentless", span_id(1))),
        # under a remote parent the earliest such span
        (
            [SpanSpec(id=n, parent=7, start=9 - n, flags=REMOTE) for n in (2, 3)],
            ("local", span_id(3)),
        ),
        # not marked as remote
        *(([SpanSpec(id=2, parent=7, flags=n)], ("missing", None)) for n in (0, 0x100, 0x200)),
    ],
)
def test_the_root_is_the_span_without_parent_else_under_a_remote_one(
    spans: list[SpanSpec], root: tuple[str, str | None]
) -> None:
    trace = trace_of(*spans)

    assert (trace.root, trace.root_span_id) == root
    assert ("no_root" in trace.gaps) is (trace.root == "missing")


def test_the_service_is_the_roots_resource() -> None:
    inner = request(SpanSpec(id=2, parent=1, start=0), resource={"service.name": "inner"})
    named = {"service.name": "outer", "service.version": "1.2"}
    root = request(SpanSpec(id=1, start=1), resource=named)
    nameless = request(SpanSpec(id=1), resource={})

    trace = read_trace([inner, root], trace_id=TRACE_ID, closed="idle")
    unknown = read_trace([nameless], trace_id=TRACE_ID, closed="idle")

    assert (trace.service, trace.agent, trace.agent_version) == ("outer", "outer", "1.2")
    assert unknown.service == "unknown_service"


def test_the_agent_is_the_outermost_one_under_a_name_that_stays() -> None:
    name = "Crew_d0606630-517f-4faf-a373-bf7f526fa94c"
    outer, inner = ({**AGENT, "gen_ai.agent.name": each} for each in (name, "writer 20251122"))
    trace = trace_of(
        SpanSpec(id=1, attributes=outer, start=1), SpanSpec(id=2, parent=1, attributes=inner)
    )

    assert (trace.agent, trace.agents) == ("Crew", ("writer", "Crew"))


def test_a_model_error_that_ended_the_work_counts_and_a_handled_tool_error_does_not() -> None:
    for failed, status, error in (
        (ran(2, 1, "f", status=2), "ok", None),
        (model(2, 1, status=2, message="400"), "error", "400"),
    ):
        trace = trace_of(SpanSpec(id=1, status=1), failed)
        assert (trace.status, trace.error) == (status, error)


# --- several turns, of which the last one's question and answer are the trace's --------------------------------------


TURNS = [("hi", "hello"), ("what is 3+4?", "7"), ("and 5+5?", "10")]


def turns_model(
    number: int,
    at: int,
    sent: str,
    answer: str,
    *,
    system: str | None = None,
    parent: int | None = None,
) -> SpanSpec:
    part = [{"type": "text", "content": system}]
    attributes = {} if system is None else {"gen_ai.system_instructions": json.dumps(part)}
    above = number - 1 if parent is None else parent
    return conventions.model(
        number, at + 1, sent, answer, parent=above, attributes=attributes, end=at + 8
    )


LOOKUP = said("", call("lookup", "c1", q="x"))
LATER = json.dumps(
    [each for side in (asked("one?"), LOOKUP, answered("c1", "1")) for each in json.loads(side)]
)
"""What a turns_model is sent once its tool has answered."""


def at_gateway(number: int, at: int, *, parent: int = 0, end: int = 9) -> SpanSpec:
    return SpanSpec(id=number, parent=parent, name="gateway.request", start=at, end=at + end)


def exchanged(trace: Trace) -> list[tuple[str | None, str | None]]:
    return [(turn.input, turn.output) for turn in trace.turns]


@for_each("parent", [0, 999])
def test_requests_at_the_top_of_a_trace_are_its_turns(parent: int) -> None:
    """A chat under one trace id, whose own span went elsewhere or never was."""
    spans = [
        span
        for number, (question, answer) in enumerate(TURNS)
        for span in (
            at_gateway(10 * number + 1, 100 * number, parent=parent),
            turns_model(10 * number + 2, 100 * number, asked(question), said(answer)),
        )
    ]
    trace = trace_of(*spans)

    assert (trace.input, trace.output) == TURNS[-1]
    assert exchanged(trace) == TURNS
    assert [turn.span_id for turn in trace.turns] == [f"{10 * n + 1:016x}" for n in range(3)]


def test_model_calls_at_the_top_are_turns_where_a_user_spoke_last() -> None:
    trace = trace_of(
        turns_model(1, 0, asked("one?"), LOOKUP, parent=0),
        turns_model(2, 20, LATER, said("It is 1."), parent=0),
        turns_model(3, 40, asked("one?", "two?"), said("It is 2."), parent=0),
    )

    assert (trace.input, trace.output) == ("two?", "It is 2.")
    assert exchanged(trace) == [("one?", "It is 1."), ("two?", "It is 2.")]


def killed(number: int) -> SpanSpec:
    """A step's span of an agent whose own span never came: it holds the question."""
    asking = {"openinference.span.kind": "CHAIN", "input.value": "one?"}
    return made(number, 10 * number, asking, parent=999, end=10 * number + 9)


@for_each("first,second", [(at_gateway(1, 0), at_gateway(3, 30)), (killed(1), killed(3))])
def test_what_a_gateway_or_a_killed_agent_leaves_of_one_turn_is_one_turn(
    first: SpanSpec, second: SpanSpec
) -> None:
    asks = turns_model(2, first.start, asked("one?"), LOOKUP)
    trace = trace_of(first, asks, second, turns_model(4, 30, LATER, said("It is 1.")))

    assert (trace.input, trace.output, trace.turns) == ("one?", "It is 1.", ())


@for_each("at,system", [(4, None), (20, "You work.")])
def test_requests_of_one_turn_are_no_turns_of_their_own(at: int, system: str | None) -> None:
    """Two at once, or a planner and its worker."""
    plans = turns_model(2, 0, asked("Do it."), said("Plan: a, b"), system="You plan.")
    works = turns_model(4, at, asked("Plan: a, b"), said("Done."), system=system)

    assert trace_of(at_gateway(1, 0), plans, at_gateway(3, at), works).turns == ()


def test_agents_at_the_top_are_turns_with_what_they_say_themselves() -> None:
    """The words of the run go before those that its turns_model was sent."""
    agents: list[SpanSpec] = []
    models: list[SpanSpec] = []
    for number, (question, answer) in enumerate(TURNS):
        sides = {"gen_ai.input.messages": asked(question), "gen_ai.output.messages": said(answer)}
        own = {**AGENT, "gen_ai.agent.name": "calc", **sides}
        id_, at = 10 * number + 1, 100 * number
        agents.append(SpanSpec(id=id_, attributes=own, start=at, end=at + 9))
        models.append(turns_model(id_ + 1, at, asked(f"Task: {question}"), said("final_answer()")))
    above = SpanSpec(id=99, name="run experiment", end=999)

    for trace in (
        trace_of(*agents, *models),
        trace_of(above, *(replace(each, parent=99) for each in agents), *models),
    ):
        assert (trace.input, trace.output) == TURNS[-1]
        assert exchanged(trace) == TURNS
