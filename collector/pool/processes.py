"""The evaluator workers as processes: a queue of jobs, a few children, each replaced when it dies or hangs.

    job --> queue --> a worker's turn: up to BATCH jobs sent, answered in order --> the job's future

Because answers come in order, the first unanswered job of a worker that ended is the one it died on: that one is tried
once more, the others lose nothing. A worker that leaves a job unanswered for `job_timeout` seconds is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence

import msgspec

from collector.config.plan import failed
from collector.config.tree import Config
from collector.errors import SpanwiseError
from collector.pool.jobs import Job, bare_trace, encode_job_into
from collector.pool.port import PackedTrace, ReadJob, ScoreJob, TraceHead
from collector.runtime.child import LENGTH, Child, restart_pause
from collector.telemetry import Telemetry
from evaluators.model import Outcome, Trace
from evaluators.plan import Plan

log = logging.getLogger(__name__)

JOB_TIMEOUT = 30.0
START_TIMEOUT = 120.0
BATCH = 8
MAX_ATTEMPTS = 2
_head = msgspec.msgpack.Decoder(TraceHead).decode
_outcomes = msgspec.msgpack.Decoder(tuple[Outcome, ...]).decode


class WorkerDiedError(SpanwiseError):
    """A job's worker died on it as often as may be."""


class _Task:
    """A job's bytes and who waits for its answer."""

    __slots__ = ("attempts", "future", "payload")

    def __init__(self, job: Job) -> None:
        self.payload = framed(job)
        self.attempts = 0
        self.future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()


class ProcessWorkers:
    """The `Workers` port over child processes. The queue is bounded by its callers, who wait for their answers."""

    def __init__(
        self,
        config: Config,
        plan: Plan,
        *,
        count: int,
        telemetry: Telemetry,
        job_timeout: float = JOB_TIMEOUT,
    ) -> None:
        self._config = config.model_dump_json().encode()
        self._plan = plan
        self._count = count
        self._telemetry = telemetry
        self._timeout = job_timeout
        self._queue: deque[_Task] = deque()
        self._waiting = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self.pids: dict[int, int] = {}
        """Worker number -> process id, of those that run now."""

    def start(self) -> None:
        """Start the children. Jobs may be given at once; they wait until a worker is ready."""
        self._keepers = [
            asyncio.create_task(self._keep(number), name=f"worker {number}")
            for number in range(self._count)
        ]

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[Trace | PackedTrace | None]:
        """See the port. A job given up on answers as a trace of which only the id is known."""
        answers = await self._all(jobs)
        return [
            bare_trace(job.trace_id, job.closed, "worker_died") if each is None else _packed(each)
            for job, each in zip(jobs, answers, strict=True)
        ]

    async def score(self, jobs: Sequence[ScoreJob]) -> Sequence[tuple[Outcome, ...]]:
        """See the port."""
        answers = await self._all(jobs)
        message = f"the worker died or hung {MAX_ATTEMPTS} times on this trace"
        return [
            failed(self._plan, "worker_died", message, job.only)
            if each is None
            else _outcomes(each)
            for job, each in zip(jobs, answers, strict=True)
        ]

    async def close(self) -> None:
        """Children end at the end of their socket; one that does not within seconds is killed."""
        for keeper in self._keepers:
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers)
        for task in self._queue:
            task.future.cancel()
        self._queue.clear()

    async def _all(self, jobs: Sequence[Job]) -> list[bytes | None]:
        tasks = [_Task(job) for job in jobs]
        if jobs and isinstance(jobs[0], ScoreJob):
            self._queue.extendleft(reversed(tasks))  # what was read is scored before more is read
        else:
            self._queue.extend(tasks)
        self._waiting.set()
        return [await _answer(task) for task in tasks]

    async def _keep(self, number: int) -> None:
        """One worker for ever: started, given work, replaced."""
        early_ends = 0
        while True:
            answered = 0
            reason = "died"
            try:
                async with Child("collector.pool.worker", self._config, START_TIMEOUT) as child:
                    self.pids[number] = child.pid
                    while True:
                        answered += await self._turn(child, await self._take())
            except TimeoutError:
                reason = "hung"
            except (EOFError, OSError):
                pass
            finally:
                self.pids.pop(number, None)
            self._telemetry.worker_restarts.labels(reason).inc()
            log.warning("evaluator worker %d %s, starting another", number, reason)
            early_ends = 0 if answered else early_ends + 1
            await asyncio.sleep(restart_pause(early_ends) if early_ends > 1 else 0)

    async def _take(self) -> list[_Task]:
        """A turn's jobs: a fair part of what waits, at least one, so that no worker idles beside a full one."""
        while not self._queue:
            self._waiting.clear()
            await self._waiting.wait()
        share = min(BATCH, -(-len(self._queue) // self._count))
        return [self._queue.popleft() for _ in range(share)]

    async def _turn(self, child: Child, tasks: list[_Task]) -> int:
        """Send the jobs, match the answers in order; whatever was not answered goes back to the queue."""
        left = deque(tasks)
        if child.gone:  # it ended while idle: no job is to blame
            self._queue.extendleft(reversed(left))
            raise EOFError
        try:
            for task in tasks:
                child.send_frame(task.payload)
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(self._timeout) as patience:
                while left:
                    answer = await child.receive()
                    _resolve(left.popleft(), answer)
                    patience.reschedule(loop.time() + self._timeout)
        except BaseException:
            self._give_back(left)
            raise
        return len(tasks)

    def _give_back(self, left: deque[_Task]) -> None:
        if not left:
            return
        culprit = left.popleft()
        self._queue.extendleft(reversed(left))
        culprit.attempts += 1
        if culprit.attempts >= MAX_ATTEMPTS:
            if not culprit.future.done():
                culprit.future.set_exception(WorkerDiedError())
        else:
            self._queue.appendleft(culprit)
        self._waiting.set()


def framed(job: Job) -> bytearray:
    """The job as one frame: its length, then its bytes, packed in place."""
    frame = bytearray(LENGTH.size)
    encode_job_into(job, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
    return frame


def _packed(answer: bytes) -> PackedTrace:
    return PackedTrace(head=_head(answer), packed=msgspec.Raw(answer))


async def _answer(task: _Task) -> bytes | None:
    with contextlib.suppress(WorkerDiedError):
        return await task.future
    return None


def _resolve(task: _Task, answer: bytes) -> None:
    if not task.future.done():  # its caller may have been cancelled meanwhile
        task.future.set_result(answer)
