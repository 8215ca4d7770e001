"""A closed session that named a task leaves a run in `traces`, once its success can be told."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from msgspec.structs import replace as amended

from collector.config.tree import SessionWindow
from collector.log.port import TRACES
from collector.records.session_key import session_key
from collector.records.sessions import SessionAwaited, SessionsTopic, TaskClaims
from collector.records.traces import (
    RunRecord,
    SessionRecord,
    TraceRecord,
    VerdictRecord,
    decode_traces,
)
from collector.scoring.desk import Desk
from collector.scoring.task_run import heard
from tests.support.crashing_log import CrashingLog, Killed
from tests.support.scoring_fakes import (
    append,
    append_verdict,
    judged_rules,
    make_record,
    make_scorer,
    rules,
    run_to_end,
    verdict_of,
    windows,
)

LIMITS = windows(idle=10.0)


def speaking(
    trace_id: str, start: int, task: str | None = None, *, success: bool | None = None
) -> TraceRecord:
    record = make_record(trace_id, start=start)
    return amended(record, trace=replace(record.trace, task_id=task, task_success=success))


def runs(log: CrashingLog) -> list[RunRecord]:
    found = (decode_traces(each.value) for each in log.topics[TRACES])
    return [each for each in found if isinstance(each, RunRecord)]


def verdict(log: CrashingLog, *, success: bool | None) -> VerdictRecord:
    closed = [decode_traces(each.value) for each in log.topics[TRACES]]
    (session,) = [each for each in closed if isinstance(each, SessionRecord)]
    said = verdict_of(session)
    return amended(said, outcomes=tuple(amended(each, success=success) for each in said.outcomes))


def test_the_trace_that_started_later_is_heard_in_whatever_order_they_close() -> None:
    said = [
        speaking("t1", 1, "early", success=False),
        speaking("t2", 2, "late"),
        speaking("t3", 3, None, success=True),
        speaking("t4", 4),
    ]

    for order in permutations(said):
        task = None
        for each in order:
            task = heard(task, each.trace)
        assert task is not None
        assert (task.task_id, task.success) == ("late", True)


def test_a_revision_replaces_its_own_word() -> None:
    first, again = speaking("t1", 5, "a", success=False), speaking("t1", 4, "a", success=True)

    task = heard(heard(None, first.trace), again.trace)

    assert task is not None
    assert task.success is True


async def test_what_spans_say_survives_restarts_and_leaving_the_window() -> None:
    log = CrashingLog()
    small = windows(idle=10.0, max_traces=1)
    append(log, speaking("t1", 1, "refund", success=False), 0.0)
    await run_to_end(make_scorer(log, limits=small), log)
    append(log, make_record("t2", start=2, seen=3.0), 3.0)
    await run_to_end(make_scorer(log, limits=small), log)

    log.now = 20.0
    await run_to_end(make_scorer(log, limits=small), log)

    (run,) = runs(log)
    assert run == RunRecord(
        service="bot",
        session_id="s",
        agent="planner",
        task_id="refund",
        success=False,
        ended=3.0,
        named_at=1,
    )


async def test_a_session_without_a_task_is_no_run() -> None:
    log = CrashingLog()
    append(log, speaking("t1", 1, None, success=True), 0.0)

    await make_scorer(log).drain("idle")

    assert runs(log) == []


async def test_nobody_says_is_unknown() -> None:
    log = CrashingLog()
    append(log, speaking("t1", 1, "a"), 0.0)

    await make_scorer(log).drain("idle")

    assert [each.success for each in runs(log)] == [None]


@pytest.mark.parametrize("success", [True, False, None])
async def test_a_judged_evaluator_decides_with_its_verdict(success: bool | None) -> None:
    log = CrashingLog()
    judged = judged_rules(max_lag=1e9)
    append(log, speaking("t1", 1, "a"), 0.0)

    async def live() -> None:
        scorer = make_scorer(log, limits=LIMITS, judged=judged)
        scorer._rules = replace(scorer._rules, task_evaluator="tone")
        await run_to_end(scorer, log)

    await live()
    append_verdict(log, verdict_of(speaking("t1", 1, "a")), 0.0)
    log.now = 20.0
    await live()
    assert runs(log) == []

    said = verdict(log, success=success)
    append_verdict(log, said)
    await live()
    append_verdict(log, said)
    await live()

    assert [(each.task_id, each.success) for each in runs(log)] == [("a", success)]


async def test_what_spans_say_does_not_wait_for_the_judge() -> None:
    log = CrashingLog()
    append(log, speaking("t1", 1, "a", success=True), 0.0)
    scorer = make_scorer(log, judged=judged_rules(max_lag=1e9))
    scorer._rules = replace(scorer._rules, task_evaluator="tone")

    await scorer.drain("idle")

    assert [each.success for each in runs(log)] == [True]


def test_a_judge_that_is_gone_after_a_restart_leaves_an_unknown_run() -> None:
    held: list[SessionsTopic] = [
        SessionAwaited(
            service="bot",
            session_id="s",
            session_source="session.id",
            agent="planner",
            agent_version=None,
            seen=1.0,
            closed="idle",
            closed_at=2.0,
            digest="d",
            due=("agentic",),
            task=TaskClaims(task_id="a"),
        )
    ]
    desk = Desk(partition=0, rules=rules(), limits=SessionWindow(), max_open=9)

    run, tombstone = desk.restore(held)

    assert run.key == session_key("bot", "s")
    assert isinstance(run.value, bytes)
    found = decode_traces(run.value)
    assert isinstance(found, RunRecord)
    assert (found.task_id, found.success) == ("a", None)
    assert tombstone.value is None


@pytest.mark.parametrize("atomic", [True, False])
async def test_a_crash_at_any_record_gives_the_same_runs(atomic: bool) -> None:
    async def lived(fuse: int | None) -> set[bytes]:
        log = CrashingLog(atomic=atomic)
        append(log, speaking("t1", 1, "a", success=False), 0.0)
        append(log, speaking("t2", 2, None, success=True), 1.0)
        log.fuse = fuse
        for _ in range(2):
            try:
                await run_to_end(make_scorer(log, limits=LIMITS), log)
            except Killed:
                log.fuse = None
            log.now = 20.0
        await run_to_end(make_scorer(log, limits=LIMITS), log)
        return {repr(each).encode() for each in runs(log)}

    expected = await lived(None)

    assert len(expected) == 1
    for fuse in range(12):
        assert await lived(fuse) == expected
