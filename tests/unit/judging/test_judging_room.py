"""The room over a log of the tests, with judges that a test decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from collector.config.tree import JudgeConfig
from collector.judging.budget import Budget
from collector.judging.judging_room import JudgingRoom
from collector.judging.port import (
    Job,
    JobDone,
    JudgeDiedError,
    JudgeLateError,
    SessionJob,
    TraceJob,
)
from collector.log.port import TRACES
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.traces import SessionRecord, TraceRecord, VerdictRecord, decode_traces
from collector.telemetry import Telemetry
from evaluators.model import Trace
from evaluators.plan import Configured, make_plan
from evaluators.run import not_applicable
from tests.support.evaluating import OURS, a_trace
from tests.support.faulty_log import FaultyLog
from tests.support.ticking import SetClock

NOW = 1_790_000_000.0
KEY = session_key("bot", "s-1")
PLAN = make_plan(
    OURS,
    {},
    embedder="text-embedding-3-small",
    hosted=True,
    judge=True,
    only=["loop_detection", "helpfulness", "conversation_quality"],
)


class FakeJudges:
    """Answers at once, or dies, or comes late; `holds` back all."""

    def __init__(self, due: Sequence[Configured] = PLAN.judged) -> None:
        self.due = due
        self.jobs: list[Job] = []
        self.told: list[int] = []
        self.error: Exception | None = None
        self.holds = False
        self._asked = asyncio.Condition()

    async def judge(self, make: Callable[[int], Job]) -> JobDone:
        job = make(len(self.jobs))
        async with self._asked:
            self.jobs.append(job)
            self._asked.notify_all()
        if self.holds:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        scope = "trace" if isinstance(job, TraceJob) else "session"
        outcomes = tuple(
            not_applicable(each, "nothing_to_judge", "")
            for each in self.due
            if each.spec.scope == scope
        )
        return JobDone(id=job.id, outcomes=outcomes, calls=2, cost_usd=0.5)

    async def has(self, count: int) -> None:
        """Wait until so many jobs have come."""
        async with self._asked:
            await self._asked.wait_for(lambda: len(self.jobs) >= count)

    def written(self, done: JobDone) -> None:
        self.told.append(done.id)

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def compared(self) -> list[list[str | None]]:
        return [
            [each.output for each in job.history] for job in self.jobs if isinstance(job, TraceJob)
        ]


class Stand:
    """A room, what it reads, and its judges."""

    def __init__(self, log: FaultyLog | None = None) -> None:
        self.log = log or FaultyLog(clock=SetClock(NOW))
        self.log.restart()
        self.clock = self.log.clock
        self.judges = FakeJudges()
        self.budget = Budget(usd_per_day=10.0, calls_per_minute=60)
        self.room = JudgingRoom(
            log=self.log,
            judges=self.judges,
            judged=PLAN.judged,
            config=JudgeConfig(model="m"),
            budget=self.budget,
            telemetry=Telemetry(),
            clock=self.clock,
        )

    def put(self, *traces: Trace) -> None:
        for trace in traces:
            record = TraceRecord(trace=trace, revision=0, spans=(), seen=self.clock())
            self.log.append(TRACES, encode(record), key=KEY)

    def close(self, *offsets: int, digest: str = "") -> None:
        due = ("conversation_quality",) if digest else ()
        record = SessionRecord(
            service="bot", session_id="s-1", closed="idle", traces=offsets, digest=digest, due=due
        )
        self.log.append(TRACES, encode(record), key=KEY)

    async def drain(self) -> None:
        async with self.room.standing():
            await self.room.drain()

    @property
    def verdicts(self) -> list[VerdictRecord]:
        every = (decode_traces(each.value) for each in self.log.history(TRACES))
        return [each for each in every if isinstance(each, VerdictRecord)]


def turn(number: int) -> Trace:
    return a_trace(
        trace_id=f"{number:032x}",
        digest=f"d{number}",
        start_time_unix_nano=number,
        output=f"answer {number}",
    )


async def test_a_verdict_and_its_commit_are_one_write() -> None:
    stand = Stand()
    stand.put(turn(1))
    await stand.drain()

    ((records, commits),) = [call for call in stand.log.calls if call[0]]
    assert len(records) == 1
    assert [(each.group, each.offset) for each in commits] == [("judging", 1)]
    (verdict,) = stand.verdicts
    assert (verdict.subject, verdict.digest) == (turn(1).trace_id, "d1")
    assert (verdict.calls, verdict.cost_usd) == (2, 0.5)
    assert {each.evaluator for each in verdict.outcomes} == {"loop_detection", "helpfulness"}
    assert stand.judges.told == [0]


async def test_a_restart_asks_only_for_what_has_no_verdict_and_restores_the_spend() -> None:
    first = Stand()
    first.put(turn(1), turn(2))
    await first.drain()
    # The commit is lost, and a third trace came.
    first.log.forget_commits()
    second = Stand(first.log)
    second.put(turn(3))
    await second.drain()

    asked = [job.owner for job in second.judges.jobs if isinstance(job, TraceJob)]
    assert asked == [f"trace/bot/{turn(3).trace_id}/d3"]
    assert second.budget.remaining(NOW) == pytest.approx(10.0 - 2 * 0.5)
    assert sorted(each.subject for each in second.verdicts) == [turn(n).trace_id for n in (1, 2, 3)]


async def test_what_was_under_way_at_the_stop_is_asked_again_and_not_committed_over() -> None:
    first = Stand()
    first.judges.holds = True
    first.put(turn(1), turn(2))
    stopping = asyncio.Event()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(first.room.run(stopping))
        await first.judges.has(2)
        stopping.set()
    assert not first.verdicts
    assert not first.log.commits
    second = Stand(first.log)
    await second.drain()
    assert len(second.judges.jobs) == 2
    assert len(second.verdicts) == 2


async def test_history_is_the_three_turns_before_in_order_of_their_start() -> None:
    stand = Stand()
    stand.put(turn(2), turn(1), turn(3), turn(4), turn(5))
    await stand.drain()
    assert stand.judges.compared == [
        [],
        [],
        ["answer 1", "answer 2"],
        ["answer 1", "answer 2", "answer 3"],
        ["answer 2", "answer 3", "answer 4"],
    ]
    job = stand.judges.jobs[-1]
    assert isinstance(job, TraceJob)
    assert job.turn == 5
    assert [each.digest for each in job.history] == ["d2", "d3", "d4"]


async def test_history_outlives_a_restart_and_ends_with_the_session() -> None:
    first = Stand()
    first.put(turn(1), turn(2))
    await first.drain()
    second = Stand(first.log)
    second.put(turn(3))
    await second.drain()
    offsets = [
        each.position.offset
        for each in first.log.history(TRACES)
        if isinstance(decode_traces(each.value), TraceRecord)
    ]
    second.close(*offsets)
    second.put(turn(4))
    await second.drain()
    assert second.judges.compared == [["answer 1", "answer 2"], []]


async def test_a_closed_session_is_judged_from_the_traces_the_log_has() -> None:
    stand = Stand()
    stand.put(turn(1), turn(2))
    stand.close(0, 1, 77, digest="sd")
    await stand.drain()
    job = stand.judges.jobs[-1]
    assert isinstance(job, SessionJob)
    assert (job.closed, len(job.traces)) == ("idle", 2)
    verdict = stand.verdicts[-1]
    assert (verdict.scope, verdict.subject, verdict.digest) == ("session", "s-1", "sd")
    assert [each.evaluator for each in verdict.outcomes] == ["conversation_quality"]


async def test_a_judge_that_died_too_often_fails_every_due_evaluator() -> None:
    stand = Stand()
    stand.judges.error = JudgeDiedError("the judge process died 3 times on this subject")
    stand.put(turn(1))
    await stand.drain()
    (verdict,) = stand.verdicts
    found = {
        each.evaluator: (each.state, each.error and each.error.type) for each in verdict.outcomes
    }
    assert found == dict.fromkeys(("helpfulness", "loop_detection"), ("failed", "judge_died"))


async def test_a_late_judge_writes_nothing_and_is_passed_over() -> None:
    stand = Stand()
    stand.judges.error = JudgeLateError()
    stand.put(turn(1))
    await stand.drain()
    assert not stand.verdicts


async def test_a_record_that_cannot_be_read_is_passed_over() -> None:
    stand = Stand()
    stand.log.append(TRACES, b"\xc1", key=KEY)
    stand.put(turn(1))
    await stand.drain()
    assert len(stand.judges.jobs) == 1
    assert stand.log.committed("judging", TRACES, 0).offset == 2
