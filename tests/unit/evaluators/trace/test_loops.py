"""Loops: each turn is compared with those before it, in one trace or several, by texts or by their sketches."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from collector.records.traces import previous_trace
from evaluators.model import InnerTurn, Outcome, Previous, Score, ToolCall, Trace
from evaluators.plan import make_plan
from evaluators.providers.scripted import ScriptedEmbedder
from evaluators.providers.wordllama import MODEL, WordLlamaEmbedder
from evaluators.resources import Embedder, History
from evaluators.run import score_trace
from evaluators.sketches import Before, compare, sketches_of
from evaluators.trace.loop_detection import loop_detection
from tests.support.evaluating import OURS, HashEmbedder, a_trace, error_type
from tests.support.examples import examples
from tests.support.table import for_each

SORRY = "I am sorry, I could not find the status of your order. Please try again later."
ASKED = ("Has my order 4711 shipped?", "Again: has my order 4711 shipped?", "Has my order 4711?")


def turns(*said: tuple[str, str | None]) -> tuple[InnerTurn, ...]:
    return tuple(
        InnerTurn(
            span_id=f"s{number}",
            input=question,
            output=answer,
            start_time_unix_nano=number * 10,
            end_time_unix_nano=number * 10 + 5,
        )
        for number, (question, answer) in enumerate(said, start=1)
    )


def score(*said: tuple[str, str | None], history: History = History(), **more: object) -> Score:  # noqa: B008 - frozen
    trace = a_trace(turns=turns(*said), input=said[0][0], output=said[-1][1], **more)
    return loop_detection(trace, history=history, embedder=HashEmbedder())


LOOP = tuple((question, SORRY) for question in ASKED)


def test_the_same_answer_in_three_turns_is_a_loop_that_names_its_turn() -> None:
    found = score(*LOOP)

    assert (found.value, found.risk) == pytest.approx((0.0, 1.0))
    assert (found.success, found.evidence) == (None, ("s3",))
    assert (found.explanation or "").startswith("turn 3 of 3: ")


def test_a_loop_that_ended_before_the_last_turn_is_found() -> None:
    assert score(*LOOP, ("Thanks anyway", "You are welcome, have a nice day.")).evidence == ("s3",)


def test_turns_that_say_something_else_or_nothing_are_no_loop() -> None:
    found = score(("And Madrid?", "It is sunny in Madrid."), ("And Oslo?", "Snow falls up north."))
    silent = score(("Hello?", None), ("Hello?", None))

    assert found.risk == 0.0
    assert (found.value or 0) > 0.5
    assert (silent.state, silent.assumed) == ("not_applicable", 1.0)


def test_a_new_look_at_the_facts_within_the_turn_excuses_it() -> None:
    look = ToolCall(name="find", arguments={"a": 1}, result="lost", start_time_unix_nano=32)
    earlier = ToolCall(name="find", arguments={"a": 1}, result="lost", start_time_unix_nano=12)

    found = score(*LOOP, tool_calls=(earlier, look))

    assert (found.risk, found.success) == (0.0, True)


def test_the_first_turn_is_compared_with_the_traces_before() -> None:
    before = (Previous(trace_id=str(n), digest="d", output=SORRY, input=ASKED[n]) for n in range(2))

    found = score(LOOP[2], ("Bye", "Good bye to you."), history=History(tuple(before)))

    assert found.risk == pytest.approx(1.0)
    assert found.evidence == ("s1",)


# --- sketches score as texts do, to the digit -------------------------------------------------------------------------


PLAN = make_plan(OURS, {}, embedder=MODEL, only=["loop_detection"])
(LOOPS,) = PLAN.trace
ANSWERS = [
    None,
    "",
    "I could not find the status of your order 4711. Please try again later.",
    "I could not find the status of your order 4712. Please try again later, or call us.",
    "Done.",
    "é" * 9000,
]
QUESTIONS = [None, "Has my order 4711 shipped?", "Again: has my order 4711 shipped?", "Thanks"]


@st.composite
def traces(draw: st.DrawFn) -> list[Trace]:
    """A session, in order: some of its traces hold several turns, or call tools."""
    turns = st.builds(
        InnerTurn,
        span_id=st.just("s"),
        input=st.sampled_from(QUESTIONS),
        output=st.sampled_from(ANSWERS),
    )
    calls = st.builds(
        ToolCall,
        name=st.just("find"),
        arguments=st.fixed_dictionaries({"n": st.integers(0, 1)}),
        result=st.just("x"),
        start_time_unix_nano=st.integers(0, 50),
    )
    made: list[Trace] = []
    for number in range(draw(st.integers(1, 5))):
        said = [draw(turns) for _ in range(draw(st.sampled_from([1, 1, 1, 2, 5])))]
        inner = tuple(
            structs.replace(
                each, span_id=f"s{at}", start_time_unix_nano=10 * at, end_time_unix_nano=10 * at + 5
            )
            for at, each in enumerate(said)
        )
        made.append(
            a_trace(
                trace_id=f"{number:032x}",
                digest=f"d{number}",
                input=said[0].input,
                output=said[-1].output,
                turns=inner if len(inner) > 1 else (),
                tool_calls=tuple(draw(st.lists(calls, max_size=2))),
            )
        )
    return made


def by_texts(session: Sequence[Trace], embedder: Embedder) -> list[Outcome]:
    found: list[Outcome] = []
    for number, trace in enumerate(session):
        history = [
            previous_trace(each.trace_id, each.digest, each.input, each.output)
            for each in session[:number]
        ]
        found += score_trace(PLAN, trace, history=history, embedder=embedder)
    return found


def by_sketches(session: Sequence[Trace], embedder: Embedder) -> list[Outcome]:
    kept: list[Before] = []
    found: list[Outcome] = []
    for trace in session:
        sketches, without = sketches_of(PLAN.trace, trace, embedder)
        found += without
        if sketch := sketches.get("loop_detection"):
            found.append(compare(LOOPS, sketch, kept))
        kept.append(Before(trace.digest, sketches))
    return found


@settings(max_examples=examples(100), deadline=None)
@given(traces())
def test_sketches_say_what_texts_say(session: list[Trace]) -> None:
    for embedder in (HashEmbedder(), WordLlamaEmbedder()):
        assert by_sketches(session, embedder) == by_texts(session, embedder)


def test_a_trace_before_of_which_nothing_is_known_is_one_without_an_answer() -> None:
    sketches, _ = sketches_of(PLAN.trace, a_trace(), HashEmbedder())

    unknown = compare(LOOPS, sketches["loop_detection"], [Before("d", {})])

    assert (unknown.state, unknown.compared) == ("not_applicable", ("d",))


@for_each(
    "trace,reason",
    [
        (a_trace(model_calls=()), "not_a_turn"),
        (a_trace(gaps=("no_content",)), "no_content"),
    ],
)
def test_what_there_is_nothing_to_compare_of_has_its_outcome_at_once(
    trace: Trace, reason: str
) -> None:
    sketches, outcomes = sketches_of(PLAN.trace, trace, HashEmbedder())

    assert sketches == {}
    assert [each.reason for each in outcomes] == [reason]
    assert list(outcomes) == list(score_trace(PLAN, trace, embedder=HashEmbedder()))


def test_an_embedder_that_fails_is_the_evaluators_outcome() -> None:
    sketches, (outcome,) = sketches_of(PLAN.trace, a_trace(), ScriptedEmbedder({}))

    assert sketches == {}
    assert error_type(outcome) == "exception"


def test_a_sketch_that_cannot_be_read_is_the_evaluators_outcome() -> None:
    assert compare(LOOPS, b"\xc1", []).state == "failed"


def test_without_an_embedder_nothing_is_kept() -> None:
    assert sketches_of(PLAN.trace, a_trace(), None) == ({}, [])
