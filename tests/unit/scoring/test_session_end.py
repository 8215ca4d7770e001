"""What a session that closed leaves: turns for third parties, its work, and a run of the task that it named."""

from dataclasses import replace
from itertools import permutations

import msgspec
import pytest
from msgspec.structs import replace as amended

from collector.log.port import TRACES
from collector.records.codec import encode
from collector.records.sessions import SessionAwaited, TaskClaims
from collector.records.trace_views import decode_work
from collector.records.traces import (
    RunRecord,
    SessionRecord,
    TraceRecord,
    VerdictRecord,
    WorkRecord,
    decode_traces,
)
from collector.scoring import session_end
from collector.scoring.effects import Tombstone
from collector.scoring.session_end import merge_task_claims, newest_turns, unscored_turn
from collector.scoring.session_work import ranked_work
from collector.scoring.sliding_window import SlidingWindow
from evaluators.resources import WINDOW
from tests.support.evaluating import a_turn
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.scoring_fakes import (
    CLOSED,
    append,
    append_verdict,
    judged_rules,
    make_record,
    make_scorer,
    open_sessions,
    rules,
    run_to_end,
    scored_log,
    summarised,
    verdict_of,
    windows,
)


def test_a_record_holds_the_newest_turns_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [a_turn(f"{number:032x}", number, {}) for number in range(10)]
    monkeypatch.setattr(session_end, "TURNS_SIZE", sum(len(encode(each)) for each in turns[7:]))

    assert newest_turns(turns) == tuple(turns[7:])
    assert newest_turns(turns[8:]) == tuple(turns[8:])
    assert newest_turns([]) == ()


LATEST = (1 << 64) - 1


def test_a_session_that_ends_at_the_end_of_time_has_a_record() -> None:
    record = make_record("t", start=0)
    trace = replace(record.trace, start_time_unix_nano=1, end_time_unix_nano=LATEST)
    window = SlidingWindow(max_traces=10, max_age=1e6, history=WINDOW, used=[(), ()])
    record = msgspec.structs.replace(record, trace=trace)
    window.place(unscored_turn(summarised(record), service="bot", session_id="s", offset=0))

    (work,) = ranked_work(replace(rules(), ranks=True), window, None, CLOSED, ())

    decoded = decode_work(encode(work))
    assert isinstance(decoded, WorkRecord)
    assert decoded.ended == LATEST


LIMITS = windows(idle=10.0)


def claiming(
    trace_id: str, start: int, task: str | None = None, *, success: bool | None = None
) -> TraceRecord:
    record = make_record(trace_id, start=start)
    return amended(record, trace=replace(record.trace, task_id=task, task_success=success))


def runs(log: FaultyLog) -> list[RunRecord]:
    records = (decode_traces(each.value) for each in log.history(TRACES))
    return [each for each in records if isinstance(each, RunRecord)]


def verdict(log: FaultyLog, *, success: bool | None) -> VerdictRecord:
    closed = [decode_traces(each.value) for each in log.history(TRACES)]
    (session,) = [each for each in closed if isinstance(each, SessionRecord)]
    verdict = verdict_of(session)
    outcomes = tuple(amended(each, success=success) for each in verdict.outcomes)
    return amended(verdict, outcomes=outcomes)


def test_the_trace_that_started_later_wins_in_whatever_order_they_close() -> None:
    claims = [
        claiming("t1", 1, "early", success=False),
        claiming("t2", 2, "late"),
        claiming("t3", 3, None, success=True),
        claiming("t4", 4),
    ]

    for order in permutations(claims):
        task = None
        for each in order:
            task = merge_task_claims(task, summarised(each).summary)
        assert task is not None
        assert (task.task_id, task.success) == ("late", True)


def test_a_revision_replaces_its_earlier_claims() -> None:
    first, again = claiming("t1", 5, "a", success=False), claiming("t1", 4, "a", success=True)

    claims = merge_task_claims(None, summarised(first).summary)
    task = merge_task_claims(claims, summarised(again).summary)

    assert task is not None
    assert task.success is True


async def test_claims_of_spans_survive_restarts_and_leaving_the_window() -> None:
    log = scored_log()
    small = windows(idle=10.0, max_traces=1)
    append(log, claiming("t1", 1, "refund", success=False), 0.0)
    await run_to_end(make_scorer(log, limits=small), log)
    append(log, make_record("t2", start=2, seen=3.0), 3.0)
    await run_to_end(make_scorer(log, limits=small), log)

    log.clock.now = 20.0
    await run_to_end(make_scorer(log, limits=small), log)

    (run,) = runs(log)
    assert run == RunRecord(
        service="bot",
        session_id="s",
        agent="planner",
        task_id="refund",
        success=False,
        stated=True,
        ended=3.0,
        named_at=1,
    )


@pytest.mark.parametrize(
    ("task", "claimed", "is_judged", "found"),
    [(None, True, False, []), ("a", None, False, [None]), ("a", True, True, [True])],
    ids=["no task", "no claim", "a claim does not wait for the judge"],
)
async def test_a_session_that_closes_is_a_run_of_its_task(
    *, task: str | None, claimed: bool | None, is_judged: bool, found: list[bool | None]
) -> None:
    log = scored_log()
    append(log, claiming("t1", 1, task, success=claimed), 0.0)
    scorer = make_scorer(log, judged=judged_rules(max_lag=1e9) if is_judged else None)
    scorer._rules = replace(scorer._rules, task_evaluator="tone" if is_judged else None)

    await scorer.drain("idle")

    assert [each.success for each in runs(log)] == found


@pytest.mark.parametrize("success", [True, False, None])
async def test_a_judged_evaluator_decides_with_its_verdict(success: bool | None) -> None:
    log = scored_log()
    judged = judged_rules(max_lag=1e9)
    append(log, claiming("t1", 1, "a"), 0.0, stand_in=True)

    async def live() -> None:
        scorer = make_scorer(log, limits=LIMITS, judged=judged)
        scorer._rules = replace(scorer._rules, task_evaluator="tone")
        await run_to_end(scorer, log)

    await live()
    append_verdict(log, verdict_of(claiming("t1", 1, "a")), 0.0)
    log.clock.now = 20.0
    await live()
    assert runs(log) == []

    decision = verdict(log, success=success)
    append_verdict(log, decision)
    await live()
    append_verdict(log, decision)
    await live()

    assert [(each.task_id, each.success) for each in runs(log)] == [("a", success)]


def test_a_judge_that_is_gone_after_a_restart_leaves_an_unknown_run() -> None:
    awaited = SessionAwaited(
        subject=CLOSED, closed_at=2.0, digest="d", due=("agentic",), task=TaskClaims(task_id="a")
    )

    run, tombstone = open_sessions(rules()).restore([awaited])

    assert isinstance(run, RunRecord)
    assert (run.session_id, run.task_id, run.success) == ("s", "a", None)
    assert tombstone == Tombstone(state=awaited)


@pytest.mark.parametrize("atomic", [True, False])
async def test_a_crash_at_any_record_gives_the_same_runs(atomic: bool) -> None:
    async def lived(fuse: int | None) -> set[bytes]:
        log = scored_log(atomic=atomic)
        append(log, claiming("t1", 1, "a", success=False), 0.0)
        append(log, claiming("t2", 2, None, success=True), 1.0)
        log.restart()
        log.crash_after = fuse
        for _ in range(2):
            try:
                await run_to_end(make_scorer(log, limits=LIMITS), log)
            except Crash:
                log.restart()
            log.clock.now = 20.0
        await run_to_end(make_scorer(log, limits=LIMITS), log)
        return {repr(each).encode() for each in runs(log)}

    expected = await lived(None)

    assert len(expected) == 1
    for fuse in range(12):
        assert await lived(fuse) == expected
