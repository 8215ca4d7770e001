"""The evaluator workers as processes: a fair queue of jobs, a few children, each replaced when it dies or hangs.

    job --> fair queue --> a worker's batch: a few jobs sent, answered in order --> the call that waits

Because answers come in order, the first unanswered job of a worker that ended is the one it died on: that one is tried
once more, behind all other jobs of its service; the others lose nothing. A worker that leaves a job unanswered for
`job_timeout` seconds is killed, and the job's second try gets RETRY_TIMEOUT at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from collector.base.child import LENGTH, Child, restart_backoff
from collector.base.errors import Retryable
from collector.base.telemetry import Telemetry
from collector.base.watch import ends
from collector.config.plan import failed_outcomes
from collector.config.tree import Config
from collector.reading.fair_queue import JobQueue
from collector.reading.families import PoolFamilies
from collector.reading.held_traces import HeldTraces
from collector.reading.port import (
    MISSING,
    GlanceJob,
    GlanceResult,
    Job,
    PackedTrace,
    ReadJob,
    ScoreJob,
    encode_job_into,
)
from collector.reading.worker import bare_trace
from evaluators.model import Outcome, Trace
from evaluators.plan import Plan

_log = logging.getLogger(__name__)

JOB_TIMEOUT = 30.0
START_TIMEOUT = 120.0
RETRY_TIMEOUT = 5.0
"""Seconds of the second try of a job that hung."""
MAX_ATTEMPTS = 2
MOST_LEFT = 2
"""Times that a job is left to the worker that holds its trace."""
STOP_GRACE = 3.0
"""Seconds that jobs get once the service stops."""
_STOPS = "the workers end with the service"
_packed = msgspec.msgpack.Decoder(PackedTrace).decode
_seen = msgspec.msgpack.Decoder(GlanceResult)
_outcomes = msgspec.msgpack.Decoder(tuple[Outcome, ...]).decode
_Asked: TypeAlias = ReadJob | ScoreJob | GlanceJob
_Answer: TypeAlias = bytes | PackedTrace


class _Call:
    """What a caller waits for: the answers to its jobs, all at once, so that it wakes up once."""

    __slots__ = ("future", "missing")

    def __init__(self, jobs: int) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.missing = jobs
        """Answers."""
        if not jobs:
            self.future.set_result(None)


class _Task:
    """A job and its answer, once there is one; None if its workers died on it."""

    __slots__ = ("answer", "attempts", "call", "job", "left", "service", "timeout", "whole")

    def __init__(self, job: _Asked, call: _Call, timeout: float) -> None:
        self.job = job
        self.call = call
        self.answer: _Answer | None = None
        self.service = job.service
        self.timeout = timeout
        """Seconds until a worker that has not answered is killed."""
        self.attempts = 0
        self.left = 0
        """How often a worker left it to the one that holds its trace."""
        self.whole = False
        """Whether its trace is sent in any case: a worker did not hold it."""

    @property
    def is_wanted(self) -> bool:
        """Whether its caller still waits."""
        return not self.call.future.done()

    def resolve(self, answer: _Answer | None) -> None:
        """It is answered, or given up."""
        if not self.is_wanted:  # its caller was cancelled meanwhile
            return
        self.answer = answer
        self.call.missing -= 1
        if not self.call.missing:
            self.call.future.set_result(None)


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
        down: Callable[[], None] = lambda: None,
    ) -> None:
        """`up` is called whenever a worker becomes ready for jobs, `down` whenever one has ended."""
        self._config = config.model_dump_json().encode()
        self._plan = plan
        self._count = count
        self._restarts = PoolFamilies(telemetry).worker_restarts
        self._timeout = job_timeout
        self._up = up
        self._down = down
        self._queue: JobQueue[_Task] = JobQueue(config.fairness.share)
        self._waiting = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._asked: set[_Call] = set()
        self._has_given_up = False
        self._lost: dict[int, tuple[str, float]] = {}
        """Worker number -> the service whose job ended it, and when, until another one is up."""
        self._held: dict[int, HeldTraces[None]] = {}
        """Worker number -> the names of the traces that it has read and holds."""
        self.pids: dict[int, int] = {}
        """Worker number -> process id, of those that run now."""

    def start(self) -> None:
        """Start the children. Jobs may be sent at once; they wait until a worker is ready."""
        self._keepers = [
            asyncio.create_task(self._keep(number), name=f"worker {number}")
            for number in range(self._count)
        ]

    async def watch(self) -> None:
        """See `base.watch.Watched`: a child that ends is replaced, by a task that does not."""
        await ends(self._keepers)

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[Trace | PackedTrace | None]:
        """See the port. A job that its workers died on is answered with a bare trace."""
        answers = await self._all(jobs)
        return [
            each
            if isinstance(each, PackedTrace)
            else bare_trace(job.trace_id, job.closed, "worker_died")
            for job, each in zip(jobs, answers, strict=True)
        ]

    async def score(self, jobs: Sequence[ScoreJob]) -> Sequence[tuple[Outcome, ...]]:
        """See the port."""
        answers = await self._all(jobs)
        message = f"the worker died or hung {MAX_ATTEMPTS} times on this trace"
        return [
            _outcomes(each)
            if isinstance(each, bytes)
            else failed_outcomes(self._plan, "worker_died", message, job.only)
            for job, each in zip(jobs, answers, strict=True)
        ]

    async def glance(self, job: GlanceJob) -> GlanceResult:
        """See the port."""
        (answer,) = await self._all([job])
        if not isinstance(answer, bytes):
            raise Retryable("the worker died or hung on an open trace")
        return _seen.decode(answer)

    def hasten(self, within: float = STOP_GRACE) -> None:
        """See the port."""
        asyncio.get_running_loop().call_later(within, self._give_up)

    def _give_up(self) -> None:
        self._has_given_up = True
        for call in self._asked:
            call.future.cancel()

    async def close(self) -> None:
        """Children end at the end of their socket; one that does not within seconds is killed."""
        for keeper in self._keepers:
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers)
        for task in self._queue:
            task.call.future.cancel()

    async def _all(self, jobs: Sequence[_Asked]) -> list[_Answer | None]:
        if self._has_given_up:
            raise Retryable(_STOPS)
        call = _Call(len(jobs))
        tasks = [_Task(job, call, self._timeout) for job in jobs]
        self._asked.add(call)
        now = asyncio.get_running_loop().time()
        for task in tasks:  # traces that were read are scored before more are read
            self._queue.put(task, now, first=isinstance(task.job, ScoreJob))
        self._waiting.set()
        try:
            await call.future
            return [task.answer for task in tasks]
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._has_given_up and not (current and current.cancelling()):
                raise Retryable(_STOPS) from None
            raise
        finally:
            self._asked.discard(call)

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
            child = Child("collector.reading.worker", self._config, START_TIMEOUT)
            is_up = False
            try:
                async with child:
                    is_up = True
                    self.pids[number] = child.pid
                    self._held[number] = HeldTraces()
                    self._up()
                    self._charge(number, loop.time())
                    while True:
                        answered += await self._send(number, child, await self._take(number))
            except TimeoutError:
                reason = "hung"
            except (EOFError, OSError):
                pass
            finally:
                self.pids.pop(number, None)
                self._held.pop(number, None)
                self._down()
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

    async def _take(self, number: int) -> list[_Task]:
        """A batch of jobs, at least one, for which a caller waits."""
        while True:
            while not self._queue:
                self._waiting.clear()
                await self._waiting.wait()
            batch = self._queue.take(
                asyncio.get_running_loop().time(),
                workers=self._count,
                leave=lambda task: self._is_left(task, number),
            )
            if wanted := [task for task in batch if task.is_wanted]:
                return wanted

    def _is_left(self, task: _Task, number: int) -> bool:
        """Whether a worker leaves the job to the one that holds its trace: not for ever, that one may be busy."""
        job = task.job
        if not isinstance(job, ScoreJob) or task.left >= MOST_LEFT:
            return False
        if job.name in self._held[number]:
            return False
        is_left = any(job.name in held for held in self._held.values())
        task.left += is_left
        return is_left

    def _framed(self, task: _Task, held: HeldTraces[None]) -> bytearray:
        """The job as a frame, without its trace where the worker holds it."""
        job = task.job
        if not isinstance(job, ScoreJob):
            return framed(job)
        is_held = job.name in held
        held.take(job.name)
        return framed(job.packed(held=is_held and not task.whole))

    async def _send(self, number: int, child: Child, tasks: list[_Task]) -> int:
        """Send the jobs, match answers in order, queue unanswered jobs again. Returns how many were answered."""
        loop = asyncio.get_running_loop()
        unanswered, held = deque(tasks), self._held[number]
        if child.has_ended:  # it ended while idle, so no job caused it
            self._queue.put_back(unanswered, loop.time())
            raise EOFError
        try:
            child.send_frames([self._framed(task, held) for task in tasks])
            while unanswered:
                self._queue.began(unanswered[0], loop.time())
                answers = await child.receive_all(within=unanswered[0].timeout)
                now = loop.time()
                for answer in answers:
                    self._queue.ended(unanswered[0], now)
                    self._answered(unanswered.popleft(), answer, held)
        except BaseException as error:
            self._give_back(number, unanswered, hung=isinstance(error, TimeoutError))
            raise
        return len(tasks)

    def _answered(self, task: _Task, answer: bytes, held: HeldTraces[None]) -> None:
        if isinstance(task.job, ScoreJob) and answer == MISSING:
            task.whole = True
            self._queue.put_back([task], asyncio.get_running_loop().time())
            self._waiting.set()
            return
        if isinstance(task.job, ReadJob):
            read = _packed(answer)
            held.put(read.head.name, None, len(read.packed))
            task.resolve(read)
        else:
            task.resolve(answer)

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
            culprit.resolve(None)
        else:
            self._queue.put(culprit, now, first=False)
        self._waiting.set()


def _note_end(number: int, child: Child, reason: str) -> None:
    if reason != "never_up":
        _log.warning("Evaluator worker %d %s, another is started", number, reason)
        return
    if child.was_interrupted:
        _log.info("Evaluator worker %d was interrupted as it started", number)
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
