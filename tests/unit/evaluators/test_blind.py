"""What the spans do not carry is never a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evaluators.declare import declared, evaluator
from evaluators.model import Outcome, Score, Session, ToolCall, Trace
from evaluators.plan import make_plan
from evaluators.registry import Registry
from evaluators.run import SessionScorer, score_trace
from tests.support.evaluating import a_trace, a_turn

PLAN = make_plan(Registry.discover(), {}, embedder=None)

UNSEEN = ToolCall(name="get_status", span_id="b" * 16)
FAILED = ToolCall(name="get_status", span_id="b" * 16, error="timeout")
SEEN = ToolCall(name="get_status", arguments={"id": 1}, result="unknown", span_id="b" * 16)


def trace(calls: Sequence[ToolCall] = (), **fields: Any) -> Trace:
    return a_trace(input=None, output=None, tool_calls=tuple(calls), gaps=("no_content",), **fields)


def outcomes(subject: Trace) -> dict[str, Outcome]:
    return {each.evaluator: each for each in score_trace(PLAN, subject)}


@pytest.mark.parametrize(
    "subject",
    [
        trace(),
        trace([UNSEEN]),
        trace([UNSEEN] * 12),
        trace([FAILED]),
        trace([UNSEEN], status="error"),
    ],
    ids=["answers", "calls a tool", "loops", "fails in a tool", "fails"],
)
def test_without_any_content_nothing_is_scored(subject: Trace) -> None:
    assert {(each.state, each.reason, each.score) for each in outcomes(subject).values()} == {
        ("not_applicable", "no_content", None)
    }


def test_calls_without_any_text_show_faults_and_never_perfection() -> None:
    fine, looping = outcomes(trace([SEEN])), outcomes(trace([SEEN] * 3))

    assert {each.score for each in fine.values()} == {None}
    assert fine["tool_correctness"].reason == "no_content"
    assert looping["step_efficiency"].score is not None
    assert looping["step_efficiency"].score < 0.5
    assert looping["confidence"].reason == "no_content"


@evaluator(version="1", reads={"tokens"}, source="test")
def frugality(trace: Trace) -> Score:
    """Reads no content."""
    return Score(value=1.0)


def test_an_evaluator_that_reads_no_content_needs_none() -> None:
    plan = make_plan(Registry(filter(None, [declared(frugality)])), {}, embedder=None)

    (outcome,) = score_trace(plan, trace())

    assert outcome.score == 1.0


def session_outcome(present: int, missing: int) -> Outcome:
    plan = make_plan(Registry.discover(), {}, embedder=None, only=["agent_reliability"])
    scorer = SessionScorer(plan)
    seen = [a_turn(f"s{at}", at, {"confidence": 0.9}) for at in range(present)]
    unseen = [a_turn(f"u{at}", at, {}, unscored=("confidence",)) for at in range(missing)]
    turns = [*seen, *unseen]
    for each in turns:
        scorer.put(each)
    session = Session(service="bot", session_id="s", agent="bot", turns=turns)
    (outcome,) = (
        each
        for each in scorer.outcomes(session, closed=True)
        if each.evaluator == "agent_reliability"
    )
    return outcome


def test_a_session_of_which_half_is_seen_has_a_score() -> None:
    outcome = session_outcome(2, 2)

    assert (outcome.state, outcome.score, outcome.coverage) == ("scored", 0.9, (4, 2))


@pytest.mark.parametrize("present", [0, 1])
def test_a_session_of_which_less_than_half_is_seen_has_none(present: int) -> None:
    outcome = session_outcome(present, 4 - present)

    assert (outcome.state, outcome.reason) == ("skipped", "low_coverage")
    assert (outcome.score, outcome.assumed, outcome.coverage) == (None, None, (4, present))
    assert outcome.explanation == f"only {present} of 4 scores that it reads are there"
