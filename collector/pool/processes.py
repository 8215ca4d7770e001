"""The evaluator workers as processes: a fair queue of jobs, a few children, each replaced when it dies or hangs.

    job --> fair queue --> a worker's batch: a few jobs sent, answered in order --> the job's future

Because answers come in order, the first unanswered job of a worker that ended is the one it died on: that one is tried
once more, behind all other jobs of its service; the others lose nothing. A worker that leaves a job unanswered for
`job_timeout` seconds is killed, and the job's second try gets RETRY_TIMEOUT at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from collector.config.plan import failed_outcomes
from collector.config.tree import Config
from collector.errors import Retryable
from collector.pool.fair_queue import FairQueue
from collector.pool.families import PoolFamilies
from collector.pool.port import (
    GlanceJob,
    Job,
    PackedTrace,
    ReadJob,
    ScoreJob,
    Seen,
    TraceHead,
    encode_job_into,
)
from collector.pool.worker import bare_trace
from collector.runtime.child import LENGTH, Child, restart_backoff
from collector.telemetry import Telemetry
from evaluators.model import Outcome, Trace
from evaluators.plan import Plan

_log = logging.getLogger(__name__)

JOB_TIMEOUT = 30.0
START_TIMEOUT = 120.0
RETRY_TIMEOUT = 5.0
"""Seconds of the second try of a job that hung."""
MAX_ATTEMPTS = 2
STOP_GRACE = 3.0
"""Seconds that jobs get once the service stops."""
_STOPS = "the workers end with the service"
_head = msgspec.msgpack.Decoder(TraceHead).decode
_seen = msgspec.msgpack.Decoder(Seen)
_outcomes = msgspec.msgpack.Decoder(tuple[Outcome, ...]).decode


class _Task:
    """A job and the future that its caller waits for: the answer, or None if its workers died on it."""

    __slots__ = ("attempts", "future", "job", "service", "timeout")

    def __init__(self, job: Job, timeout: float) -> None:
        self.job = job
        self.service = job.service
        self.timeout = timeout
        """Seconds until a worker that has not answered is killed."""
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
        up: Callable[[], None] = lambda: None,
    ) -> None:
        """`up` is called whenever a worker becomes ready for jobs."""
        self._config = config.model_dump_json().encode()
        self._plan = plan
        self._count = count
        self._restarts = PoolFamilies(telemetry).worker_restarts
        self._timeout = job_timeout
        self._up = up
        self._queue: FairQueue[_Task] = FairQueue(config.fairness.share)
        self._waiting = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._asked: set[_Task] = set()
        self._has_given_up = False
        self._lost: dict[int, tuple[str, float]] = {}
        """Worker number -> the service whose job ended it, and when, until another one is up."""
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

    async def glance(self, job: GlanceJob) -> Seen:
        """See the port."""
        (answer,) = await self._all([job])
        if answer is None:
            raise Retryable("the worker died or hung on an open trace")
        return _seen.decode(answer)

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

    async def _all(self, jobs: Sequence[Job]) -> list[bytes | None]:
        if self._has_given_up:
            raise Retryable(_STOPS)
        tasks = [_Task(job, self._timeout) for job in jobs]
        self._asked.update(tasks)
        now = asyncio.get_running_loop().time()
        for task in tasks:  # traces that were read are scored before more are read
            self._queue.put(task, now, first=isinstance(task.job, ScoreJob))
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
            for task in (
                tasks
            ):  # one of them failed or the caller was cancelled: nobody waits for the others
                task.future.cancel()

    async def _keep(self, number: int) -> None:
        """Keep one worker: start it, send it jobs, replace it when it ends.

        A worker that has answered a job is replaced at once, one that has not after a growing wait. The service whose
        job ended a worker is charged until another one is up.
        """
        loop = asyncio.get_running_loop()
        restarts = restart_backoff()
        while True:
            answered = 0
            reason = "died"
            child = Child("collector.pool.worker", self._config, START_TIMEOUT)
            is_up = False
            try:
                async with child:
                    is_up = True
                    self.pids[number] = child.pid
                    self._up()
                    self._charge(number, loop.time())
                    while True:
                        answered += await self._send(number, child, await self._take())
            except TimeoutError:
                reason = "hung"
            except (EOFError, OSError):
                pass
            finally:
                self.pids.pop(number, None)
            self._restarts.labels(reason).inc()
            _note_end(number, child, reason if is_up else "never_up")
            if answered:
                restarts.reset()
            else:
                await restarts.sleep()

    def _charge(self, number: int, now: float) -> None:
        if (lost := self._lost.pop(number, None)) is not None:
            service, since = lost
            self._queue.charge(service, now - since, now)

    async def _take(self) -> list[_Task]:
        """A batch of jobs, at least one, for which a caller waits."""
        while True:
            while not self._queue:
                self._waiting.clear()
                await self._waiting.wait()
            batch = self._queue.take(asyncio.get_running_loop().time(), workers=self._count)
            if wanted := [task for task in batch if not task.future.done()]:
                return wanted

    async def _send(self, number: int, child: Child, tasks: list[_Task]) -> int:
        """Send the jobs, match answers in order, queue unanswered jobs again. Returns how many were answered."""
        loop = asyncio.get_running_loop()
        unanswered = deque(tasks)
        if child.has_ended:  # it ended while idle, so no job caused it
            self._queue.put_back(unanswered, loop.time())
            raise EOFError
        try:
            for task in tasks:
                child.send_frame(framed(task.job))
            while unanswered:
                task = unanswered[0]
                self._queue.began(task, loop.time())
                async with asyncio.timeout(task.timeout):
                    answer = await child.receive()
                self._queue.ended(task, loop.time())
                _resolve(unanswered.popleft(), answer)
        except BaseException as error:
            self._give_back(number, unanswered, hung=isinstance(error, TimeoutError))
            raise
        return len(tasks)

    def _give_back(self, number: int, unanswered: deque[_Task], *, hung: bool) -> None:
        if not unanswered:
            return
        now = asyncio.get_running_loop().time()
        culprit = unanswered.popleft()
        self._queue.ended(culprit, now)
        self._queue.put_back(unanswered, now)
        self._lost[number] = culprit.service, now
        culprit.attempts += 1
        if hung:
            culprit.timeout = min(culprit.timeout, RETRY_TIMEOUT)
        if culprit.attempts >= MAX_ATTEMPTS or isinstance(culprit.job, GlanceJob):
            _resolve(culprit, None)
        else:
            self._queue.put(culprit, now, first=False)
        self._waiting.set()


def _note_end(number: int, child: Child, reason: str) -> None:
    if reason != "never_up":
        _log.warning("Evaluator worker %d %s, another is started", number, reason)
        return
    _log.error(
        "Evaluator worker %d was not ready within %g s or ended before (exit code %s): its own lines above say why; "
        "nothing is scored and /readyz stays 503 until one starts; another is tried",
        number,
        START_TIMEOUT,
        child.exit_code,
    )


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
