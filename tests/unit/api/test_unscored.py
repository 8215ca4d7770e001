"""What the pages say of a session without a score, and of a trace that is still open and runs away."""

from typing import Any

from collector.api.session_news import LENGTH, why_unscored
from collector.records.signal import Coverage, Signal
from evaluators.model import Failure, Trace
from tests.support import api_records as make
from tests.support.api_stand import Stand
from tests.support.standings import running_away, standings

OF = make.trace(1)
LOW = "only 1 of the 4 scores that it needs: the spans carry no content (3)"


def reliability(score: float | None, **changes: Any) -> Signal:
    return make.session_signal(OF, "agent_reliability", score, **changes)


def low(revision: int, explanation: str | None = LOW) -> Signal:
    why = {"outcome": "skipped", "reason": "low_coverage", "explanation": explanation}
    coverage = Coverage(expected=4, present=1)
    return reliability(None, revision=revision, coverage=coverage, **why)


def test_the_explanation_is_the_reason_and_the_next_best_where_there_is_none() -> None:
    error = Failure(type="exception", message="a secret")
    failed = reliability(None, outcome="failed", error=error)
    bare = reliability(None, explanation=None)

    assert why_unscored(make.value(low(1))) == LOW
    assert why_unscored(make.value(low(1, "x" * 999))) == "x" * LENGTH
    assert why_unscored(make.value(low(1, None))) == LOW.partition(":")[0]
    assert why_unscored(make.value(failed)) == "failed with exception"
    assert why_unscored(make.value(bare)) is None


async def test_the_overview_says_why_until_there_is_a_score(stand: Stand) -> None:
    stand.take_traces(OF)
    stand.take_signals(low(1))
    before = "".join([await stand.text(path) for path in ("/", "/sessions")])
    stand.take_signals(reliability(0.9, revision=2))
    stand.standings = standings(0.9)
    after = "".join([await stand.text(path) for path in ("/", "/sessions")])

    assert before.count("not scored") == 2, "the agent and its session"
    assert before.count(LOW) == 2
    assert "not scored" not in after
    assert "0.90" in after


async def test_a_score_that_goes_is_followed_by_the_reason(stand: Stand) -> None:
    stand.take_traces(OF)
    stand.take_signals(reliability(1.0, revision=1))
    stand.take_signals(low(2))
    (shown,) = await stand.items("sessions")
    (agent,) = await stand.items("agents")
    page = await stand.text(f"/session?id={OF.session_id}")

    assert (shown["reliability"], shown["coverage"]) == (None, {"expected": 4, "present": 1})
    assert agent["reliability"] is None
    assert "Only 1 of the 4 scores" in page
    assert "1.00" not in page


async def test_a_trace_without_any_score_says_why_and_never_nothing_to_judge(stand: Stand) -> None:
    why = {"reason": "no_content", "explanation": "the spans carry no content"}
    unscored = {"outcome": "not_applicable", "score": None, "success": None, **why}
    stand.take_traces(OF)
    stand.take_signals(make.signal(OF, "confidence", **unscored))

    session = await stand.text(f"/session?id={OF.session_id}")
    trace = await stand.text(f"/trace?id={OF.trace_id}")

    assert "Not scored: the spans carry no content" in session
    assert "no content</span>" in trace
    assert "nothing to judge" not in trace


MARK = "running away now"


def found(of: Trace, **changes: Any) -> Signal:
    fields: dict[str, Any] = {"score": 0.0, "success": False, "final": False, "closed": None}
    return make.signal(of, "runaway", **{**fields, **changes})


async def test_an_open_trace_is_marked_wherever_it_stands(stand: Stand) -> None:
    of = make.trace(1)
    taken = stand.take_signals(found(of))
    stand.standings = running_away(of)

    pages = [
        await stand.text(path)
        for path in ("/", "/sessions", f"/session?id={of.session_id}", f"/trace?id={of.trace_id}")
    ]
    (agent,) = await stand.items("agents")

    assert len(taken.signals) == 1, "the live stream has it"
    assert [MARK in page for page in pages] == [True] * 4
    assert pages[0].count(MARK) == 2, "on top, and at the agent"
    assert [each["trace_id"] for each in agent["runaways"]] == [of.trace_id]


async def test_the_final_outcome_wins_at_its_revision_whichever_comes_last(
    stand: Stand,
) -> None:
    of = make.trace(1)
    final = found(of, final=True, closed="idle", id="f" * 32)
    stand.take_traces(of)

    taken = [
        len(stand.take_signals(each).signals)
        for each in (found(of), final, found(of, id="e" * 32), found(of, revision=1, id="d" * 32))
    ]
    page = await stand.text(f"/trace?id={of.trace_id}")

    assert taken == [1, 1, 0, 1]
    assert MARK in page, "late spans opened it again"


async def test_a_trace_that_named_its_session_at_its_end_leaves_no_session_of_its_own(
    stand: Stand,
) -> None:
    of = make.trace(1)
    stand.take_signals(found(of, session_id=of.trace_id, session_source="trace"))
    before = await stand.items("sessions")

    stand.take_traces(of)
    after = await stand.items("sessions")
    (agent,) = await stand.items("agents")

    assert [each["session_id"] for each in before] == [of.trace_id]
    assert [each["session_id"] for each in after] == [of.session_id]
    assert agent["traces"] == 1
