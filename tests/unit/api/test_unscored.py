"""In the place of a score that a session does not have, the page says why."""

from typing import Any

from collector.api.session_news import LENGTH, why_unscored
from collector.records.signal import Coverage, Signal
from evaluators.model import Failure
from tests.support import api_records as make
from tests.support.api_stand import Stand
from tests.support.standings import standings

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
