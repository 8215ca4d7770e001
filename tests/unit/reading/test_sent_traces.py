"""A trace goes to a worker once: the one that has read it scores it, and is sent it again only where it must be."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Self

import msgspec
import pytest

from collector.base.child import LENGTH
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.log.port import TRACES, Position, Record
from collector.reading import processes
from collector.reading.held_traces import HeldTraces
from collector.reading.port import HELD, PackedScoreJob, PackedTrace, ReadJob, ScoreJob, decode_job
from collector.reading.processes import ProcessWorkers
from collector.reading.worker import JobRunner
from collector.records.codec import encode
from collector.records.trace_summary import Summariser, headers_of
from collector.records.trace_views import SummarisedTrace, decode_summarised
from collector.records.traces import PackedTraceRecord
from evaluators.model import Outcome
from tests.support.bench_traces import read_jobs

CONFIG = Config.model_validate({"embedder": {"kind": "none"}})
PLAN = plan_from(CONFIG)
JOBS = read_jobs(6)


class Inside:
    """What the children of a pool were sent, and what becomes of them."""

    def __init__(self) -> None:
        self.scored: list[tuple[int, bool]] = []
        """The child's number, and whether it was sent the trace."""
        self.children: list[FakeChild] = []
        self.busy: set[int] = set()
        """Numbers of children that answer nothing for now."""
        self.free = asyncio.Event()


class FakeChild:
    """A worker in this process: what it is sent is answered by a `JobRunner` of its own."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self.runner = JobRunner(CONFIG, PLAN)
        self._jobs: deque[bytes] = deque()
        self.has_ended = False
        self.dies = False
        self.exit_code = None

    async def __aenter__(self) -> Self:
        self.pid = len(self._inside.children)
        self._inside.children.append(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    def send_frames(self, frames: Sequence[bytearray]) -> None:
        self._jobs += [bytes(each[LENGTH.size :]) for each in frames]

    async def receive_all(self, within: float) -> list[bytes]:
        assert within == processes.JOB_TIMEOUT
        await asyncio.sleep(0)
        if self.pid in self._inside.busy:
            await self._inside.free.wait()
        if self.dies:
            raise EOFError
        job = decode_job(self._jobs.popleft())
        if isinstance(job, PackedScoreJob):
            self._inside.scored.append((self.pid, job.trace != HELD))
        return [msgspec.msgpack.encode(self.runner.run(job))]


@asynccontextmanager
async def pool(
    monkeypatch: pytest.MonkeyPatch, count: int = 1
) -> AsyncGenerator[tuple[ProcessWorkers, Inside]]:
    inside = Inside()

    def child(_module: str, _config: bytes, _timeout: float) -> FakeChild:
        return FakeChild(inside)

    monkeypatch.setattr(processes, "Child", child)
    workers = ProcessWorkers(CONFIG, PLAN, count=count, telemetry=Telemetry())
    workers.start()
    yield workers, inside
    await workers.close()


async def read(workers: ProcessWorkers, jobs: Sequence[ReadJob] = JOBS) -> list[ScoreJob]:
    """Read the traces; the jobs that score them, as the scorer makes them of their records."""
    made: list[ScoreJob] = []
    for each in await workers.read(jobs):
        assert isinstance(each, PackedTrace)
        value = PackedTraceRecord(trace=msgspec.Raw(each.packed), spans=(), revision=0, seen=0.0)
        record = Record(
            position=Position(TRACES, 0, 0),
            key=b"",
            value=encode(value),
            time=0.0,
            headers=headers_of(each.summary, revision=0, seen=0.0),
        )
        found = decode_summarised(record, Summariser())
        assert isinstance(found, SummarisedTrace)
        made.append(ScoreJob(trace=found))
    return made


def of_one_service(job: ScoreJob) -> ScoreJob:
    summary = msgspec.structs.replace(job.trace.summary, service="bot")
    return ScoreJob(trace=msgspec.structs.replace(job.trace, summary=summary))


def expected(jobs: Sequence[ScoreJob]) -> list[tuple[Outcome, ...] | None]:
    """By a worker that has read none of them."""
    runner = JobRunner(CONFIG, PLAN)
    return [runner.score(job.packed()) for job in jobs]


async def test_the_worker_that_read_a_trace_scores_it_without_being_sent_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pool(monkeypatch) as (workers, inside):
        jobs = await read(workers)
        outcomes = await workers.score(jobs)
        again = await workers.score(jobs)

    assert outcomes == again == expected(jobs)
    assert [sent for _, sent in inside.scored] == [False] * 6 + [True] * 6


async def test_a_worker_that_holds_less_than_is_thought_is_sent_the_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with pool(monkeypatch) as (workers, inside):
        jobs = await read(workers)
        inside.children[0].runner._held = HeldTraces()
        outcomes = await workers.score(jobs)

    assert outcomes == expected(jobs)
    assert sorted(sent for _, sent in inside.scored) == [False] * 6 + [True] * 6


async def test_what_a_worker_held_is_gone_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool(monkeypatch) as (workers, inside):
        jobs = await read(workers)
        inside.children[0].dies = True
        outcomes = await workers.score(jobs)

    assert outcomes == expected(jobs)
    assert len(inside.children) == 2
    assert inside.scored == [(1, True)] * 6


async def test_a_job_is_left_to_the_worker_that_holds_its_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = [msgspec.structs.replace(each, service="bot") for each in JOBS[:2]]
    async with pool(monkeypatch, count=2) as (workers, inside):
        jobs = [of_one_service(each) for each in await read(workers, reading)]
        assert [len(each.runner._held) for each in inside.children] == [1, 1]
        await workers.score(jobs[::-1])

    assert sorted(inside.scored) == [(0, False), (1, False)]


async def test_no_job_waits_for_a_worker_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with pool(monkeypatch, count=2) as (workers, inside):
        jobs = await read(workers)
        inside.busy.add(0)
        stuck = asyncio.create_task(workers.read(JOBS[:1]))
        await asyncio.sleep(0.01)
        outcomes = await asyncio.wait_for(workers.score(jobs), 10)
        assert not stuck.done()
        inside.free.set()
        await stuck

    assert outcomes == expected(jobs)
    assert {child for child, _ in inside.scored} == {1}
    assert any(sent for _, sent in inside.scored)


async def test_a_trace_that_is_none_is_undecodable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another program: its summary could be read."""
    async with pool(monkeypatch) as (workers, _):
        (job, *_) = await read(workers)
        await workers.score([job])
        trace = msgspec.structs.replace(job.trace, value=b"\x01")
        (outcomes,) = await workers.score([ScoreJob(trace=trace)])

    assert {each.error and each.error.type for each in outcomes} == {"undecodable"}


async def turned(until: Callable[[], bool]) -> None:
    """Let the event loop turn until it is so."""
    for _ in range(10_000):  # some dozens are enough
        if until():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never was so")


async def test_a_job_is_not_left_for_ever_to_a_worker_that_is_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = [msgspec.structs.replace(each, service="bot") for each in JOBS]
    # The clock stands still: how many jobs a worker takes at once depends on how long earlier ones took.
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 0.0)
    async with pool(monkeypatch, count=2) as (workers, inside):
        (left,) = map(of_one_service, await read(workers, reading[:1]))
        (holder,) = (number for number, held in workers._held.items() if left.name in held)
        inside.busy.add(holder)
        stuck = [asyncio.create_task(workers.read(reading[1:2])) for _ in range(2)]
        await turned(lambda: sum(each.done() for each in stuck) == 1)
        others = [of_one_service(each) for each in await read(workers, reading[2:])]
        await workers.score([left, *others])
        inside.free.set()
        await asyncio.wait(stuck)

    assert [sent for _, sent in inside.scored].index(True) == processes.MOST_LEFT
