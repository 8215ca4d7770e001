"""A session whose judge has not answered, or answers nothing, shows no score while it is open, nor when it closes."""

from collections.abc import Iterable

from msgspec.structs import replace

from collector.config.plan import plan_from
from collector.config.tree import Config, EmbedderConfig, JudgeConfig
from collector.records.sessions import session_key
from collector.records.signal import Coverage, Signal
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.traces import VerdictRecord
from collector.scoring.effects import Effects
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import JudgedRules, Rules
from evaluators.model import Failure
from evaluators.run import SessionScorer, score_trace
from tests.support.scoring_fakes import make_record, open_sessions, summarised, taken, verdict_of

PLAN = plan_from(Config(embedder=EmbedderConfig(kind="none"), judge=JudgeConfig(model="m")))
KEY = session_key("bot", "s")


def make_sessions(max_traces: int = 1000) -> OpenSessions:
    judged = JudgedRules(trace=tuple(c for c in PLAN.judged if c.spec.scope == "trace"))
    rules = Rules.of(PLAN, lambda: SessionScorer(PLAN), judged)
    return open_sessions(rules, max_traces=max_traces)


def take(sessions: OpenSessions, trace_id: str, offset: int) -> Effects:
    record = make_record(trace_id)
    outcomes = TraceOutcomes(score_trace(PLAN, record.trace))
    read = replace(summarised(record), outcomes=outcomes)
    return taken(sessions, read, offset=offset, now=1.0)


def verdict(trace_id: str, *, score: float | None) -> VerdictRecord:
    made = verdict_of(make_record(trace_id))
    names = sorted({c.spec.name for c in PLAN.judged if c.spec.scope == "trace"})
    down = Failure(type="provider_error", message="connection refused")
    (given,) = made.outcomes
    outcome = (
        replace(given, score=score)
        if score is not None
        else replace(given, state="failed", score=None, error=down)
    )
    return replace(made, outcomes=tuple(replace(outcome, evaluator=name) for name in names))


def reliability(effects: Iterable[Effects]) -> Signal:
    found = [each.signal for effect in effects for each in effect.publish]
    return [each for each in found if each.evaluator == "agent_reliability"][-1]


def test_an_open_session_waits_for_the_judge_without_a_score() -> None:
    sessions = make_sessions()

    waiting = reliability([take(sessions, "t1", 1)])
    judged = reliability(sessions.on_verdict(verdict("t1", score=0.9), key=KEY, offset=2, now=1.0))
    one_more = reliability([take(sessions, "t2", 3)])

    assert (waiting.outcome, waiting.reason, waiting.score) == ("skipped", "low_coverage", None)
    assert waiting.coverage == Coverage(expected=2, present=0)
    assert "the judge has not answered yet" in (waiting.explanation or "")
    assert judged.score is not None
    assert one_more.score == judged.score


def test_a_judge_that_only_fails_gives_no_session_a_score() -> None:
    sessions = make_sessions()
    take(sessions, "t1", 1)

    after = reliability(sessions.on_verdict(verdict("t1", score=None), key=KEY, offset=2, now=1.0))
    closed = reliability(sessions.close_all("idle"))

    assert (after.reason, after.score, after.final) == ("low_coverage", None, False)
    assert (closed.reason, closed.score, closed.final) == ("low_coverage", None, True)
    assert "failed with provider_error" in (closed.explanation or "")


def test_no_verdict_is_given_up_for_a_trace_that_has_left_the_window() -> None:
    sessions = make_sessions(max_traces=1)
    take(sessions, "t1", 1)
    take(sessions, "t2", 2)

    late = 2.0 + JudgedRules().max_lag
    effects = sessions.on_verdict(verdict("t1", score=0.9), key=KEY, offset=3, now=late)
    changes = [change for each in effects for change in each.changes]

    assert [each.subject for each in changes if isinstance(each, VerdictRecord)] == ["t2"]
