"""The evaluator workers as processes: a fair queue of jobs, a few children, each replaced when it dies or hangs.

    job --> fair queue --> a worker's batch: a few jobs sent, answered in order --> the call that waits

Because answers come in order, the first unanswered job of a worker that ended is the one it died on: that one is tried
once more, behind all other jobs of its service, and a trace a third time without its evaluators; the others lose
nothing. A worker that leaves a job unanswered for `job_timeout` seconds is killed, and the job's next try gets
RETRY_TIMEOUT at most.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from collector.base.child import Child, restart_backoff
from collector.base.errors import Retryable
from collector.base.frames import LENGTH
from collector.base.telemetry import Telemetry
from collector.base.watch import ends
from collector.config.declaring import IMPORT_TIMEOUT
from collector.config.tree import Config
from collector.reading.fair_queue import JobQueue
from collector.reading.families import PoolFamilies
from collector.reading.port import (
    GlanceJob,
    GlanceResult,
    Job,
    PackedTrace,
    ReadJob,
    encode_job_into,
    reader_settings,
)
from collector.reading.trace_scoring import unread_outcomes
from collector.reading.worker import bare_trace, packed
from collector.records.trace_summary import Summariser
from evaluators.model import Failure
from evaluators.plan import Plan

_log = logging.getLogger(__name__)

JOB_TIMEOUT = 30.0
START_TIMEOUT = 120.0
RETRY_TIMEOUT = 5.0
"""Seconds of the next try of a job that hung."""
MAX_ATTEMPTS = 2
"""Of a job, as one death may be chance; a trace is then read once more without its evaluators."""
STOP_GRACE = 3.0  # seconds that jobs get once the service stops
_STOPS = "the workers end with the service"
_packed = msgspec.msgpack.Decoder(PackedTrace).decode
_seen = msgspec.msgpack.Decoder(GlanceResult)


class Task:
    """A job, and the future of its answer: None if its workers died on it."""

    __slots__ = ("answer", "attempts", "job", "lost", "service", "timeout")

    def __init__(self, job: Job, timeout: float) -> None:
        self.job = job
        self.answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.service = job.service
        self.timeout = timeout  # seconds until a worker that has not answered is killed
        self.attempts = 0
        self.lost: Failure | None = None  # why there is no answer, as its outcome says it

    @property
    def is_wanted(self) -> bool:
        return not self.answer.done()

    def resolve(self, answer: bytes | None) -> None:
        if self.is_wanted:  # else its caller was cancelled meanwhile
            self.answer.set_result(answer)


@dataclass(kw_only=True)
class Processes:
    """Child processes that answer jobs. The queue is bounded by its callers, who wait for their answers."""

    config: Config
    count: int
    telemetry: Telemetry
    package: str = ""  # the third party whose evaluators the children run; empty: they run ours
    turn: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)  # see `Child`
    job_timeout: float = JOB_TIMEOUT
    up: Callable[[], None] = lambda: None  # called whenever a worker becomes ready for jobs
    down: Callable[[], None] = lambda: None  # called whenever one has ended

    _what = "Evaluator worker"
    _task = "worker"
    _meanwhile = "nothing is scored and /readyz stays 503 until one starts"
    _one_by_one = False  # whether a child has one job at a time

    def __post_init__(self) -> None:
        self._settings = msgspec.json.encode(reader_settings(self.config, self.package))
        self._start_timeout = IMPORT_TIMEOUT if self.package else START_TIMEOUT
        self._restarts = PoolFamilies(self.telemetry).worker_restarts
        self._queue: JobQueue[Task] = JobQueue(self.config.fairness.share)
        self._waiting = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._asked: set[Task] = set()
        self._has_given_up = False
        self._lost: dict[int, tuple[str, float]] = {}
        """Worker number -> the service whose job ended it, and when, until another one is up."""
        self.pids: dict[int, int] = {}  # worker number -> process id, of those that run now

    def start(self) -> None:
        """Start the children. Jobs may be sent at once; they wait until a worker is ready."""
        self._keepers = [
            asyncio.create_task(self._keep(number), name=f"{self._task} {number}")
            for number in range(self.count)
        ]

    async def watch(self) -> None:
        await ends(self._keepers)

    def hasten(self, within: float = STOP_GRACE) -> None:
        asyncio.get_running_loop().call_later(within, self._give_up)

    def _give_up(self) -> None:
        self._has_given_up = True
        for task in self._asked:
            task.answer.cancel()

    async def close(self) -> None:
        """Children end at the end of their socket; one that does not within seconds is killed."""
        for keeper in self._keepers:
            keeper.cancel()
        if self._keepers:
            await asyncio.wait(self._keepers)
        for task in self._queue:
            task.answer.cancel()

    async def _answered(self, jobs: Sequence[Job]) -> Sequence[Task]:
        if self._has_given_up:
            raise Retryable(_STOPS)
        tasks = [Task(job, self.job_timeout) for job in jobs]
        self._asked.update(tasks)
        now = asyncio.get_running_loop().time()
        for task in tasks:
            self._queue.put(task, now)
        self._waiting.set()
        try:
            for task in tasks:
                await task.answer
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._has_given_up and not (current and current.cancelling()):
                raise Retryable(_STOPS) from None
            raise
        finally:
            self._asked.difference_update(tasks)
            for task in tasks:
                task.answer.cancel()
        return tasks

    async def _keep(self, number: int) -> None:
        """Keep one worker: start it, send it jobs, replace it when it ends.

        A worker that has answered a job, or that a plug-in ended, is replaced at once, another one after a growing
        wait. The service whose job ended a worker is charged until another one is up.
        """
        loop = asyncio.get_running_loop()
        restarts = restart_backoff()
        while True:
            answered = 0
            reason = "died"
            await self._needed(number)
            child = Child(
                "collector.reading.worker",
                self._settings,
                self._start_timeout,
                self.turn,
                bool(self.package),
            )
            is_up = False
            try:
                async with child:
                    is_up = True
                    self.pids[number] = child.pid
                    self.up()
                    self._charge(number, loop.time())
                    while True:
                        answered += await self._send(number, child, await self._take())
            except TimeoutError:
                reason = "hung"
            except (EOFError, OSError):
                pass
            finally:
                self.pids.pop(number, None)
                self.down()
            self._restarts.labels(reason).inc()
            self._note_end(number, child, reason if is_up else "never_up")
            if answered or (self.package and is_up and number in self._lost):
                restarts.reset()
            else:
                await restarts.sleep()

    def _charge(self, number: int, now: float) -> None:
        if (lost := self._lost.pop(number, None)) is not None:
            service, since = lost
            self._queue.charge(service, now - since, now)

    async def _take(self) -> list[Task]:
        """A batch of jobs, at least one, for which a caller waits."""
        while True:
            await self._any_waits()
            parts = len(self._queue) if self._one_by_one else self.count
            batch = self._queue.take(asyncio.get_running_loop().time(), workers=parts)
            if wanted := [task for task in batch if task.is_wanted and not self._is_refused(task)]:
                return wanted

    async def _any_waits(self) -> None:
        while not self._queue:
            self._waiting.clear()
            await self._waiting.wait()

    async def _send(self, number: int, child: Child, tasks: list[Task]) -> int:
        """Send the jobs, match answers in order, queue unanswered jobs again. Returns how many were answered."""
        loop = asyncio.get_running_loop()
        unanswered = deque(tasks)
        if child.has_ended:  # it ended while idle, so no job caused it
            self._queue.put_back(unanswered, loop.time())
            raise EOFError
        try:
            child.send_frames([framed(task.job) for task in tasks])
            while unanswered:
                self._queue.began(unanswered[0], loop.time())
                async with asyncio.timeout(unanswered[0].timeout):
                    answer = await child.receive()
                self._check(unanswered[0], answer)
                self._queue.ended(unanswered[0], loop.time())
                unanswered.popleft().resolve(answer)
        except BaseException as error:
            self._give_back(number, unanswered, hung=isinstance(error, TimeoutError))
            raise
        return len(tasks)

    def _give_back(self, number: int, unanswered: deque[Task], *, hung: bool) -> None:
        if not unanswered:
            return
        now = asyncio.get_running_loop().time()
        culprit = unanswered.popleft()
        self._queue.ended(culprit, now)
        self._queue.put_back(unanswered, now)
        self._lost[number] = culprit.service, now
        culprit.attempts += 1
        if self._is_tried_again(culprit, hung=hung):
            self._queue.put(culprit, now)
        else:
            culprit.resolve(None)
        self._waiting.set()

    async def _needed(self, _number: int) -> None:
        """Return when the process of this number is to be started."""

    def _is_refused(self, _task: Task) -> bool:
        return False

    def _check(self, _task: Task, _answer: bytes) -> None:
        """Raise EOFError where others' code has written the answer."""

    def _is_tried_again(self, task: Task, *, hung: bool) -> bool:
        raise NotImplementedError

    def _note_end(self, number: int, child: Child, reason: str) -> None:
        if reason != "never_up":
            _log.warning("%s %d %s, another is started", self._what, number, reason)
            return
        if child.was_interrupted:
            _log.info("%s %d was interrupted as it started", self._what, number)
            return
        if child.start_error is not None:
            why = child.start_error
            _log.error("%s %d cannot be started: %s; another is tried", self._what, number, why)
            return
        _log.error(
            "%s %d was not ready within %g s or ended before (exit code %s): its own lines above say why; "
            "%s; another is tried",
            self._what,
            number,
            self._start_timeout,
            child.exit_code,
            self._meanwhile,
        )


@dataclass(kw_only=True)
class ProcessWorkers(Processes):
    plan: Plan

    def __post_init__(self) -> None:
        super().__post_init__()
        self._summariser = Summariser(self.config.tasks.read_only)

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[PackedTrace]:
        tasks = await self._answered(jobs)
        return [
            self._died_on(job) if (answer := each.answer.result()) is None else _packed(answer)
            for job, each in zip(jobs, tasks, strict=True)
        ]

    def _died_on(self, job: ReadJob) -> PackedTrace:
        trace, changed = job.kept(bare_trace(job.trace_id, job.closed, "worker_died"))
        outcomes = unread_outcomes(self.plan, "worker_died")
        return packed(trace, outcomes, job, self._summariser, session_changed=changed)

    async def glance(self, job: GlanceJob) -> GlanceResult:
        (task,) = await self._answered([job])
        if (answer := task.answer.result()) is None:
            raise Retryable("the worker died or hung on an open trace")
        return _seen.decode(answer)

    def _is_tried_again(self, task: Task, *, hung: bool) -> bool:
        if hung:
            task.timeout = min(task.timeout, RETRY_TIMEOUT)
        job = task.job
        if isinstance(job, ReadJob) and job.is_scored:
            task.job = replace(job, is_scored=task.attempts < MAX_ATTEMPTS)
            return True
        return task.attempts < MAX_ATTEMPTS and not isinstance(job, GlanceJob)


def framed(job: Job) -> bytearray:
    """The job as one frame: its length, then its bytes, packed in place."""
    frame = bytearray(LENGTH.size)
    encode_job_into(job, frame, LENGTH.size)
    LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
    return frame
