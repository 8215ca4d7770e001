"""What the spans do not carry is never a score."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from evaluators.declare import evaluator
from evaluators.model import PENDING, Outcome, Score, Session, ToolCall, Trace, Turn
from evaluators.plan import make_plan
from evaluators.run import score_trace
from evaluators.uses import CallCount
from tests.support.evaluating import OURS, a_trace, a_turn, plan_of, session_outcomes
from tests.support.table import for_each

PLAN = make_plan(OURS, {}, embedder=None)

UNSEEN = ToolCall(name="get_status", span_id="b" * 16)
FAILED = ToolCall(name="get_status", span_id="b" * 16, error="timeout")
SEEN = ToolCall(name="get_status", arguments={"id": 1}, result="unknown", span_id="b" * 16)


def trace(calls: Sequence[ToolCall] = (), **fields: Any) -> Trace:
    return a_trace(input=None, output=None, tool_calls=tuple(calls), gaps=("no_content",), **fields)


def outcomes(subject: Trace) -> dict[str, Outcome]:
    return {each.evaluator: each for each in score_trace(PLAN, subject)}


@for_each(
    "subject",
    [
        *(trace(), trace([UNSEEN]), trace([UNSEEN] * 12), trace([UNSEEN, FAILED])),
        trace([UNSEEN], status="error"),
    ],
)
def test_without_any_content_nothing_is_scored(subject: Trace) -> None:
    assert {(each.state, each.reason, each.score) for each in outcomes(subject).values()} == {
        ("not_applicable", "no_content", None)
    }


def test_faults_of_calls_are_facts_without_any_text_and_their_absence_is_no_perfection() -> None:
    (failing,) = [each for each in outcomes(trace([FAILED])).values() if each.state == "scored"]
    recovered = outcomes(trace([FAILED, UNSEEN]))["tool_correctness"]
    fine, looping = outcomes(trace([SEEN])), outcomes(trace([SEEN] * 3))

    assert (failing.evaluator, failing.score, failing.success) == ("tool_correctness", 0.0, False)
    assert (recovered.state, recovered.reason) == ("not_applicable", "no_content")
    assert "1 of 2 tool calls at fault: 1 failed (`get_status`)" in (recovered.explanation or "")
    assert {each.score for each in fine.values()} == {None}
    assert looping["step_efficiency"].score == 0.0
    assert looping["confidence"].reason == "no_content"


def of_session(evaluator: str, *turns: Turn) -> Outcome:
    plan = make_plan(OURS, {}, embedder=None, only=[evaluator])
    return session_outcomes(plan, *turns)[evaluator]


def missing(name: str, **why: str) -> Turn:
    return a_turn(name, 0, {}, unscored=tuple(why), unscored_why=why)


def session_outcome(present: int, absent: int) -> Outcome:
    seen = [a_turn(f"s{at}", at, {"confidence": 0.9}) for at in range(present)]
    unseen = [missing(f"u{at}", confidence="no_content") for at in range(absent)]
    return of_session("agent_reliability", *seen, *unseen)


@for_each("present", [0, 1])
def test_a_session_of_which_less_than_half_is_seen_has_no_score(present: int) -> None:
    half, outcome = session_outcome(2, 2), session_outcome(present, 4 - present)

    assert (half.state, half.score, half.coverage) == ("scored", 0.9, (4, 2))
    assert (outcome.state, outcome.reason) == ("skipped", "low_coverage")
    assert (outcome.score, outcome.assumed, outcome.coverage) == (None, None, (4, present))
    why = f"the spans carry no content ({4 - present})"
    assert outcome.explanation == f"only {present} of the 4 scores that it needs: {why}"


def test_a_session_says_all_that_keeps_it_from_a_score_the_most_frequent_first() -> None:
    down = missing("t1", confidence="provider_error", tool_correctness="provider_error")

    outcome = of_session("agent_reliability", missing("t2", confidence=PENDING), down)

    assert (outcome.explanation or "").partition(": ")[2] == (
        "the judge or embedder failed with provider_error (2); the judge has not answered yet (1)"
    )


def test_a_formula_without_its_inputs_does_not_say_that_there_was_nothing_to_judge() -> None:
    """A score that is only assumed covers nothing."""
    down = {"unscored": ("confidence",), "unscored_why": {"confidence": "timeout"}}
    seen = a_turn("t", 0, {"loop_detection": 1.0, "tool_correctness": 1.0}, **down)
    assumed = a_turn("t", 0, {"loop_detection": 1.0}, assumed=("loop_detection",), **down)

    for formula, turn, coverage in (
        ("agent_consistency", seen, (3, 2)),
        ("agent_reliability", assumed, (1, 0)),
    ):
        outcome = of_session(formula, turn)
        assert (outcome.state, outcome.reason, outcome.assumed) == ("skipped", "low_coverage", None)
        assert outcome.coverage == coverage


def blind(tool_calls: int, times: int = 0) -> Turn:
    """A turn without text, one of whose calls was made so often; 0: names of tools only."""
    made = (CallCount(1, 1, times),) if times else ()
    return a_turn("t", 0, {}, has_text=False, tool_calls=tool_calls, call_counts=made)


def test_calls_of_sessions_whose_text_is_not_there_are_never_fine_but_may_be_at_fault() -> None:
    for times in (0, 1):
        outcome = of_session("repeated_calls", blind(3, times))
        assert (outcome.state, outcome.reason) == ("not_applicable", "no_content")
        assert (outcome.score, outcome.success) == (None, None)

    assert of_session("repeated_calls", blind(11, 11)).success is False
    seen = replace(blind(1, 1), trace_id="u", has_text=True)
    assert of_session("repeated_calls", blind(1, 1), seen).score == 1.0


@evaluator(version="1", source="test")
def politeness(session: Session) -> Score:
    """Reads texts, as every evaluator does that does not say what it reads."""
    return Score(value=0.7)


def test_a_session_evaluator_that_reads_texts_does_not_run_where_there_are_none() -> None:
    turn = a_turn("t", 0, {}, has_text=False)
    outcome = session_outcomes(plan_of(politeness), turn)["politeness"]

    assert (outcome.state, outcome.reason) == ("not_applicable", "no_content")
