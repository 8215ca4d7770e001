"""Which traces and sessions a judge is asked about, and what a session shows that it has not answered."""

from collections.abc import Iterable
from dataclasses import replace

from msgspec.structs import replace as amended

from collector.config.plan import plan_from
from collector.config.tree import Config, EmbedderConfig, JudgeConfig
from collector.log.port import TRACES
from collector.records.codec import encode
from collector.records.more import AskRecord, MoreRecord
from collector.records.sessions import session_key
from collector.records.signal import Coverage, Signal
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_summary import TraceSummary
from collector.records.traces import TraceRecord, VerdictRecord, decode_traces
from collector.scoring.effects import Effects
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import JudgedRules, Rules
from evaluators.model import Failure, ModelCall, Turn
from evaluators.plan import Plan, make_plan
from evaluators.registry import Registry
from evaluators.run import SessionScorer, score_trace
from tests.support.evaluating import a_turn
from tests.support.faulty_log import FaultyLog
from tests.support.scoring_fakes import append as append_record
from tests.support.scoring_fakes import (
    append_bytes,
    judged_rules,
    make_record,
    make_scorer,
    open_sessions,
    rules,
    run_to_end,
    scored_log,
    signals,
    summarised,
    taken,
    verdict_of,
)
from tests.support.table import for_each


def test_the_rules_are_read_off_the_plan() -> None:
    read = rules(judged_rules())

    assert [each.spec.name for each in read.sketched] == ["loop_detection"]
    assert "hidden" not in read.emitted
    assert {"confidence", "agent_reliability", "tone"} <= read.emitted
    assert read.used["agent_reliability"] == ("confidence", "loop_detection")
    assert read.assumed == {"loop_detection"}
    assert read.judged_methods == {("confidence", "llm_judge")}


def test_an_evaluator_that_waits_for_hosted_embeddings_keeps_its_assumed_score() -> None:
    plan = make_plan(Registry.discover(), {}, embedder="hosted", hosted=True)
    judged = JudgedRules(trace=plan.judged)

    assert "coherence" in Rules.of(Plan(), lambda: SessionScorer(Plan()), judged).assumed


def trace(*, unread: str | None = None, turn: bool = True, text: bool = True) -> TraceSummary:
    calls = (ModelCall(span_id="a" * 16),) if turn else ()
    gaps = () if text else ("no_content",)
    record = make_record("t")
    changed = replace(record.trace, unread=unread, model_calls=calls, gaps=gaps)
    return summarised(amended(record, trace=changed)).summary


@for_each(
    "sampled,subject,expected",
    [
        (True, trace(), []),
        (False, trace(), [("skipped", "sampled_out")]),
        (True, trace(turn=False), [("not_applicable", "not_a_turn")]),
        (True, trace(unread="too_deep"), [("failed", None)]),
        (True, trace(text=False), [("not_applicable", "no_content")]),
    ],
)
def test_a_judge_is_asked_about_traces_in_the_sample_that_called_something(
    sampled: bool, subject: TraceSummary, expected: list[tuple[str, str | None]]
) -> None:
    judged = judged_rules(samples=lambda _key: sampled)

    found, due = judged.judgement(subject, b"bot\0s", inside=True)

    assert [(each.state, each.reason) for each in found] == expected
    assert due == (() if found else ("confidence",))


@for_each(
    "sampled,turns,expected",
    [
        (True, [a_turn("t", 1, {}, model_calls=1)], []),
        (False, [a_turn("t", 1, {}, model_calls=1)], [("tone", "skipped", "sampled_out")]),
        (True, [], [("tone", "not_applicable", "not_a_turn")]),
        (True, [a_turn("t", 1, {}, has_text=False)], [("tone", "not_applicable", "no_content")]),
    ],
)
def test_a_judge_is_asked_about_sessions_in_the_sample_that_have_turns(
    sampled: bool, turns: list[Turn], expected: list[tuple[str, str, str]]
) -> None:
    judged = judged_rules(samples=lambda _key: sampled)

    found = judged.unasked_session(b"bot\0s", turns)

    assert [(each.evaluator, each.state, each.reason) for each in found] == expected


EVEN = session_key("bot", "even")


def one_in_the_sample() -> JudgedRules:
    return judged_rules(samples=lambda key: key == EVEN)


def append(log: FaultyLog, record: TraceRecord) -> None:
    append_record(log, record, stand_in=True)


def want(log: FaultyLog, sessions: int, *, number: int = 1, version: str | None = None) -> None:
    wanted = MoreRecord(
        service="bot", agent="planner", version=version, number=number, sessions=sessions
    )
    append_bytes(log, b"", encode(wanted))


def asked(log: FaultyLog) -> list[str]:
    records = [decode_traces(each.value) for each in log.history(TRACES)]
    return [each.session_id for each in records if isinstance(each, AskRecord)]


async def scored(log: FaultyLog) -> None:
    await run_to_end(make_scorer(log, judged=one_in_the_sample()), log)


async def test_the_next_sessions_that_begin_are_chosen_and_no_others() -> None:
    log = scored_log()
    append(log, make_record("t0", session="open"))
    want(log, 2)
    append(log, make_record("t1", session="open", start=1))
    append(log, make_record("t2", session="else", agent="writer"))
    for name in ("a", "even", "b", "c"):
        append(log, make_record(f"t-{name}", session=name))
    append(log, make_record("t-b2", session="b", start=2))

    await scored(log)

    assert asked(log) == ["a", "b", "b"]


async def test_a_restart_chooses_no_session_twice_and_no_more_than_were_wanted() -> None:
    log = scored_log()
    want(log, 2)
    append(log, make_record("t1", session="a"))
    await scored(log)
    append(log, make_record("t2", session="b"))
    append(log, make_record("t3", session="c"))
    want(log, 2)  # the same request, written again by a publisher that crashed
    append(log, make_record("t4", session="d"))

    await scored(log)

    assert asked(log) == ["a", "b"]


@for_each("wanted", [[(2, 1, "2")], [(40, 1, None), (0, 2, None)]])
async def test_a_request_for_another_version_or_one_that_a_later_one_replaced_chooses_none(
    wanted: list[tuple[int, int, str | None]],
) -> None:
    log = scored_log()
    for sessions, number, version in wanted:
        want(log, sessions, number=number, version=version)
    append(log, make_record("t1", session="a"))

    await scored(log)

    assert asked(log) == []


async def test_signals_say_by_what_their_session_was_chosen() -> None:
    log = scored_log()
    append(log, make_record("t0", session="left out"))
    want(log, 1)
    traces = {name: make_record(f"t-{name}", session=name) for name in ("even", "a")}
    for each in traces.values():
        append(log, each)
    await scored(log)
    for name, each in traces.items():
        append_bytes(log, session_key("bot", name), encode(verdict_of(each)))
    await scored(log)

    found = {
        each.session_id: (each.outcome, each.sample, each.sample_probability)
        for each in signals(log)
        if each.method == "llm_judge"
    }

    assert found == {
        "left out": ("skipped", "base", 1.0),  # the probability of the fake's sample
        "even": ("scored", "base", 1.0),
        "a": ("scored", "more", 1.0),
    }


PLAN = plan_from(Config(embedder=EmbedderConfig(kind="none"), judge=JudgeConfig(model="m")))
KEY = session_key("bot", "s")


def make_sessions(max_traces: int = 1000) -> OpenSessions:
    judged = JudgedRules(trace=tuple(c for c in PLAN.judged if c.spec.scope == "trace"))
    rules = Rules.of(PLAN, lambda: SessionScorer(PLAN), judged)
    return open_sessions(rules, max_traces=max_traces)


def take(sessions: OpenSessions, trace_id: str, offset: int) -> Effects:
    record = make_record(trace_id)
    outcomes = TraceOutcomes(score_trace(PLAN, record.trace))
    read = amended(summarised(record), outcomes=outcomes)
    return taken(sessions, read, offset=offset, now=1.0)


def verdict(trace_id: str, *, score: float | None) -> VerdictRecord:
    made = verdict_of(make_record(trace_id))
    names = sorted({c.spec.name for c in PLAN.judged if c.spec.scope == "trace"})
    down = Failure(type="provider_error", message="connection refused")
    (given,) = made.outcomes
    outcome = (
        amended(given, score=score)
        if score is not None
        else amended(given, state="failed", score=None, error=down)
    )
    return amended(made, outcomes=tuple(amended(outcome, evaluator=name) for name in names))


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
