"""The evaluator workers as processes: a queue of jobs, a few children, each replaced when it dies or hangs.

    job --> queue --> a worker's batch: up to BATCH jobs sent, answered in order --> the job's future

Because answers come in order, the first unanswered job of a worker that ended is the one it died on: that one is tried
once more, the others lose nothing. A worker that leaves a job unanswered for `job_timeout` seconds is killed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

import msgspec

from collector.config.plan import failed_outcomes
from collector.config.tree import Config
from collector.errors import Retryable
from collector.pool.families import PoolFamilies
from collector.pool.port import Job, PackedTrace, ReadJob, ScoreJob, TraceHead, encode_job_into
from collector.pool.worker import bare_trace
from collector.runtime.child import LENGTH, Child, restart_backoff
from collector.telemetry import Telemetry
from evaluators.model import Outcome, Trace
from evaluators.plan import Plan

_log = logging.getLogger(__name__)

JOB_TIMEOUT = 30.0
START_TIMEOUT = 120.0
BATCH = 8
MAX_ATTEMPTS = 2
STOP_GRACE = 3.0
"""Seconds that jobs get once the service stops."""
_STOPS = "the workers end with the service"
_head = msgspec.msgpack.Decoder(TraceHead).decode
_outcomes = msgspec.msgpack.Decoder(tuple[Outcome, ...]).decode


class _Task:
    """A job's bytes and the future that its caller waits for: the answer, or None if its workers died on it."""

    __slots__ = ("attempts", "future", "payload")

    def __init__(self, job: Job) -> None:
        self.payload = framed(job)
        self.attempts = 0
        self.future: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()


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
        self._restarts = PoolFamilies(telemetry).worker_restarts
        self._timeout = job_timeout
        self._queue: deque[_Task] = deque()
        self._waiting = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._asked: set[_Task] = set()
        self._has_given_up = False
        self.pids: dict[int, int] = {}
        """Worker number -> process id, of those that run now."""

    def start(self) -> None:
        """Start the children. Jobs may be sent at once; they wait until a worker is ready."""
        self._keepers = [
            asyncio.create_task(self._keep(number), name=f"worker {number}")
            for number in range(self._count)
        ]

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[Trace | PackedTrace | None]:
        """See the port. A job that its workers died on is answered with a bare trace."""
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
            failed_outcomes(self._plan, "worker_died", message, job.only)
            if each is None
            else _outcomes(each)
            for job, each in zip(jobs, answers, strict=True)
        ]

    def hasten(self, within: float = STOP_GRACE) -> None:
        """See the port."""
        asyncio.get_running_loop().call_later(within, self._give_up)

    def _give_up(self) -> None:
        self._has_given_up = True
        for task in self._asked:
            task.future.cancel()

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
        if self._has_given_up:
            raise Retryable(_STOPS)
        tasks = [_Task(job) for job in jobs]
        self._asked.update(tasks)
        if jobs and isinstance(jobs[0], ScoreJob):
            self._queue.extendleft(
                reversed(tasks)
            )  # traces that were read are scored before more are read
        else:
            self._queue.extend(tasks)
        self._waiting.set()
        try:
            return [await task.future for task in tasks]
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._has_given_up and not (current and current.cancelling()):
                raise Retryable(_STOPS) from None
            raise
        finally:
            self._asked.difference_update(tasks)

    async def _keep(self, number: int) -> None:
        """Keep one worker: start it, send it jobs, replace it when it ends.

        A worker that has answered a job is replaced at once, one that has not after a growing wait.
        """
        restarts = restart_backoff()
        while True:
            answered = 0
            reason = "died"
            try:
                async with Child("collector.pool.worker", self._config, START_TIMEOUT) as child:
                    self.pids[number] = child.pid
                    while True:
                        answered += await self._send(child, await self._take())
            except TimeoutError:
                reason = "hung"
            except (EOFError, OSError):
                pass
            finally:
                self.pids.pop(number, None)
            self._restarts.labels(reason).inc()
            _log.warning("Evaluator worker %d %s, another is started", number, reason)
            if answered:
                restarts.reset()
            else:
                await restarts.sleep()

    async def _take(self) -> list[_Task]:
        """A batch: a fair share of the queue, at least one job, so that no worker idles while another has many."""
        while not self._queue:
            self._waiting.clear()
            await self._waiting.wait()
        share = min(BATCH, -(-len(self._queue) // self._count))
        return [self._queue.popleft() for _ in range(share)]

    async def _send(self, child: Child, tasks: list[_Task]) -> int:
        """Send the jobs, match answers in order, queue unanswered jobs again. Returns how many were answered."""
        unanswered = deque(tasks)
        if child.has_ended:  # it ended while idle, so no job caused it
            self._queue.extendleft(reversed(unanswered))
            raise EOFError
        try:
            for task in tasks:
                child.send_frame(task.payload)
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(self._timeout) as limit:
                while unanswered:
                    answer = await child.receive()
                    _resolve(unanswered.popleft(), answer)
                    limit.reschedule(loop.time() + self._timeout)
        except BaseException:
            self._give_back(unanswered)
            raise
        return len(tasks)

    def _give_back(self, unanswered: deque[_Task]) -> None:
        if not unanswered:
            return
        culprit = unanswered.popleft()
        self._queue.extendleft(reversed(unanswered))
        culprit.attempts += 1
        if culprit.attempts >= MAX_ATTEMPTS:
            _resolve(culprit, None)
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


def _resolve(task: _Task, answer: bytes | None) -> None:
    if not task.future.done():  # its caller may have been cancelled meanwhile
        task.future.set_result(answer)
