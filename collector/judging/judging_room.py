"""The judging room: reads `traces`, has every due subject judged, appends one verdict for each.

    record -> due? -> the judge process -> one write: verdict, commit

At most `judge.concurrency` subjects are judged at once; the others wait in the log. The commit is the low-water of the
subjects under way, so these are read again after a crash; a subject that has its verdict is not judged again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from collector.clock import Clock
from collector.config.tree import JudgeConfig
from collector.errors import RecordTooLarge, Retryable, Undecodable
from collector.judging.budget import DAY, Budget, in_sample
from collector.judging.port import (
    Job,
    JobDone,
    JudgeDiedError,
    JudgeLateError,
    Judges,
    SessionJob,
    TraceJob,
)
from collector.judging.progress import Progress
from collector.judging.session_turns import SessionTurns, Turn, newest_traces, previous_turns
from collector.log.consumer import Consumer
from collector.log.port import TRACES, Assigned, Batch, Commit, Log, New, Position, Record
from collector.records.codec import encode
from collector.records.sessions import split_session_key
from collector.records.trace_views import (
    JudgedTrace,
    RawTrace,
    decode_judged_trace,
    decode_raw_trace,
)
from collector.records.traces import SessionRecord, VerdictRecord
from collector.runtime.retry import Retry, Sleep
from collector.telemetry import Telemetry
from evaluators.model import Failure, Outcome
from evaluators.plan import Configured, is_embedded, sees_history
from evaluators.resources import WINDOW
from evaluators.run import failed

BATCH = 64
POLL = 0.5
COMMIT_EVERY = 1.0
"""Seconds between commits that no verdict carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """A trace or a session to be judged."""

    record: Record
    progress: Progress
    verdict: VerdictRecord
    """Without outcomes yet."""

    @property
    def owner(self) -> str:
        """Whose answers are paid once: the subject and its digest."""
        verdict = self.verdict
        return "/".join((verdict.scope, verdict.service, verdict.subject, verdict.digest))


class JudgingRoom(Consumer):
    """See the module.

    Args:
        log: The log.
        judges: The judge process.
        judged: The judged evaluators.
        config: Concurrency, sample, `max_lag`.
        budget: Restored from the verdicts in the log.
        telemetry: The process's metrics.
        clock: The log's clock: the age of a subject is a matter of log time.
        group: The consumer group.
        session_age: Seconds after which a session is closed whatever comes.
        sleep: `asyncio.sleep`, or a test's.
    """

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        log: Log,
        judges: Judges,
        judged: Sequence[Configured],
        config: JudgeConfig,
        budget: Budget,
        telemetry: Telemetry,
        clock: Clock,
        group: str = "judging",
        session_age: float = DAY,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        super().__init__(
            log=log,
            group=group,
            topic=TRACES,
            retry=Retry("Judging", sleep),
            telemetry=telemetry,
            max_records=BATCH,
            timeout=POLL,
        )
        self._judges = judges
        self._judged = {
            scope: tuple(each for each in judged if each.spec.scope == scope)
            for scope in ("trace", "session")
        }
        compares = any(is_embedded(each) and sees_history(each) for each in judged)
        self._history = WINDOW if compares else 0
        self._config = config
        self._budget = budget
        self._clock = clock
        self._session_age = session_age
        self._partitions: dict[int, Progress] = {}
        self._turns = SessionTurns()
        self._slots = asyncio.Semaphore(config.concurrency)
        self._committed_at = clock()
        self._subjects = asyncio.TaskGroup()

    async def run(self, stopping: asyncio.Event) -> None:
        """Judge until `stopping` is set; subjects under way then are judged after the next start."""
        self._retry.stopping = stopping
        async with self.standing():
            await self._read(lambda: self._read_and_stop(stopping))

    @asynccontextmanager
    async def standing(self) -> AsyncGenerator[None]:
        """Keep the judge process; around any number of `drain`."""
        async with asyncio.TaskGroup() as group:
            judges = group.create_task(self._judges.run())
            try:
                yield
            finally:
                judges.cancel()

    async def drain(self) -> None:
        """Judge everything that is in the log; within `standing`."""
        self._retry.stopping = asyncio.Event()
        await self._read(self._read_to_end)

    async def _read(self, loop: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run the loop, then wait for the subjects under way."""
        self._partitions.clear()
        try:
            async with self._joined(), asyncio.TaskGroup() as self._subjects:
                await loop()
        except* _StopError:
            pass
        except* Retryable as errors:
            self._log_unwritten(errors)

    async def _read_and_stop(self, stopping: asyncio.Event) -> None:
        """Read until `stopping` is set, then cancel the subjects under way.

        The stop is watched by a task of its own: taking a batch may wait for a subject's verdict.
        """
        self._subjects.create_task(_stop_after(stopping))
        while True:
            await self.step()

    # --- the steps of the loop -------------------------------------------------------------------------------------

    async def revoke(self, partition: int) -> None:
        """See `Consumer`."""
        self._partitions.pop(partition, None)

    async def assign(self, assigned: Assigned) -> None:
        """Read back what the verdicts of the day cost, and which subjects above the commit have theirs.

        Below the commit, read back the turns of sessions that may still be open: later traces are numbered after them.
        """
        partition, committed = assigned.partition, assigned.offset or 0
        progress = self._partitions[partition] = Progress(committed)
        self._budget.share = len(self._partitions) / max(1, self._log_port.partitions(TRACES))
        now = self._clock()
        oldest = min(now // DAY * DAY, now - self._session_age)
        async for record in self._log_port.replay(TRACES, partition):
            is_below = record.position.offset < committed
            if record.time < oldest and is_below:
                continue
            try:
                self._restore(record, progress, is_below=is_below)
            except Undecodable:
                continue  # reported when this record was, or will be, taken in order

    async def take(self, batch: Batch) -> None:
        """Begin to judge the due subjects of a batch; waits while `judge.concurrency` are under way."""
        for record in batch.records:
            progress = self._partitions.get(record.position.partition)
            if progress is not None:
                await self._take(record, progress)

    async def commit(self) -> None:
        """Commit each partition's low-water, at most once in COMMIT_EVERY seconds; verdicts carry commits, too."""
        now = self._clock()
        if abs(now - self._committed_at) < COMMIT_EVERY:
            return
        self._committed_at = now
        commits = [
            self._commit_of(partition, low_water)
            for partition, progress in self._partitions.items()
            if progress.is_new(low_water := progress.low_water())
        ]
        if commits:
            await self._retry.log("commit traces", lambda: self._log_port.write((), commits))

    # --- records -----------------------------------------------------------------------------------------------------

    def _restore(self, record: Record, progress: Progress, *, is_below: bool) -> None:
        decoded = decode_raw_trace(record.value)
        if isinstance(decoded, VerdictRecord):
            progress.judged(decoded.subject, decoded.digest)
            self._budget.restore(
                record.time, calls=decoded.calls, usd=decoded.cost_usd, now=self._clock()
            )
        elif isinstance(decoded, SessionRecord):
            if is_below:
                self._turns.closed(record.key, decoded.traces)
        elif isinstance(decoded, RawTrace) and is_below and self._judged["trace"]:
            trace = decode_judged_trace(decoded.trace)
            if trace.is_judged:
                self._turns.add(record.key, _turn(record, trace))

    async def _take(self, record: Record, progress: Progress) -> None:
        try:
            decoded = decode_raw_trace(record.value)
            if isinstance(decoded, RawTrace):
                await self._take_trace(record, decoded, progress)
            elif isinstance(decoded, SessionRecord):
                self._turns.closed(record.key, decoded.traces)
                await self._take_session(record, decoded, progress)
            elif isinstance(decoded, VerdictRecord):
                progress.judged(decoded.subject, decoded.digest)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
        progress.taken(record.position.offset)

    async def _take_trace(self, record: Record, raw: RawTrace, progress: Progress) -> None:
        trace = decode_judged_trace(raw.trace)
        if not self._judged["trace"] or not trace.is_judged:
            return
        turn = _turn(record, trace)
        number = self._turns.add(record.key, turn)
        if progress.is_judged(trace.trace_id, trace.digest) or not self._is_due(record):
            return
        before = self._turns.before(record.key, turn, self._history)
        service, session_id = split_session_key(record.key)
        verdict = VerdictRecord(
            scope="trace",
            service=service,
            session_id=session_id,
            subject=trace.trace_id,
            digest=trace.digest,
            outcomes=(),
        )
        subject = _Subject(record=record, progress=progress, verdict=verdict)
        await self._begin(subject, self._judge_trace(subject, raw, number, before))

    async def _take_session(
        self, record: Record, session: SessionRecord, progress: Progress
    ) -> None:
        is_judged = progress.is_judged(session.session_id, session.digest)
        if not session.due or not self._judged["session"] or is_judged or not self._is_due(record):
            return
        verdict = VerdictRecord(
            scope="session",
            service=session.service,
            session_id=session.session_id,
            subject=session.session_id,
            digest=session.digest,
            outcomes=(),
        )
        subject = _Subject(record=record, progress=progress, verdict=verdict)
        await self._begin(subject, self._judge_session(subject, session))

    def _is_due(self, record: Record) -> bool:
        """Whether the session is in the sample, and scoring still waits for the verdict."""
        in_time = record.time + self._config.max_lag > self._clock()
        return in_time and in_sample(record.key, self._config.sample)

    async def _begin(self, subject: _Subject, judging: Coroutine[None, None, None]) -> None:
        """Judge the subject in a task of its own, as soon as fewer than `judge.concurrency` are under way."""
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            judging.close()
            raise
        subject.progress.judged(subject.verdict.subject, subject.verdict.digest)
        subject.progress.begin(subject.record.position.offset)
        self._subjects.create_task(judging)

    # --- judging -----------------------------------------------------------------------------------------------------

    async def _judge_trace(
        self, subject: _Subject, raw: RawTrace, turn: int | None, before: Sequence[Turn]
    ) -> None:
        history = await previous_turns(self._get, subject.record.position.partition, before)
        await self._judge(
            subject,
            lambda number: TraceJob(
                id=number, owner=subject.owner, trace=raw.trace, turn=turn, history=history
            ),
        )

    async def _judge_session(self, subject: _Subject, session: SessionRecord) -> None:
        partition = subject.record.position.partition
        traces = await newest_traces(self._get, partition, session.traces)
        await self._judge(
            subject,
            lambda number: SessionJob(
                id=number,
                owner=subject.owner,
                service=session.service,
                session_id=session.session_id,
                closed=session.closed,
                traces=traces,
            ),
        )

    async def _get(self, position: Position) -> Record | None:
        return await self._retry.log("fetch a trace", lambda: self._log_port.get(position))

    async def _judge(self, subject: _Subject, make: Callable[[int], Job]) -> None:
        """One subject, from its job to its verdict in the log."""
        try:
            await self._append(subject, await self._judges.judge(make))
        except JudgeLateError:
            subject.progress.end(subject.record.position.offset)
        except JudgeDiedError as error:
            outcomes = self._failed(subject.verdict.scope, str(error))
            await self._append(subject, None, outcomes)
        finally:
            self._slots.release()

    def _failed(self, scope: str, message: str) -> tuple[Outcome, ...]:
        error = Failure(type="judge_died", message=message)
        return tuple(failed(each, error) for each in self._judged[scope])

    async def _append(
        self, subject: _Subject, done: JobDone | None, outcomes: tuple[Outcome, ...] = ()
    ) -> None:
        """Write the verdict together with the commit that it allows."""
        position, progress = subject.record.position, subject.progress
        verdict = msgspec.structs.replace(
            subject.verdict,
            outcomes=outcomes if done is None else done.outcomes,
            calls=0 if done is None else done.calls,
            cost_usd=0.0 if done is None else done.cost_usd,
        )
        key, partition = subject.record.key, position.partition
        new = New(topic=TRACES, key=key, value=encode(verdict), partition=partition)
        low_water = progress.low_water(without=position.offset)
        commits = [self._commit_of(partition, low_water)] if progress.is_new(low_water) else []
        try:
            await self._retry.log("write a verdict", lambda: self._log_port.write([new], commits))
        except RecordTooLarge as error:
            self._poison.too_large(TRACES, key, error)
        progress.end(position.offset)
        if done is not None:
            self._judges.written(done)

    def _commit_of(self, partition: int, offset: int) -> Commit:
        return Commit(group=self._group, topic=TRACES, partition=partition, offset=offset)


class _StopError(Exception):
    """The room is to stop: the tasks of the subjects under way are cancelled."""


async def _stop_after(stopping: asyncio.Event) -> None:
    """End the task group that this runs in once `stopping` is set: raises _StopError."""
    await stopping.wait()
    raise _StopError


def _turn(record: Record, trace: JudgedTrace) -> Turn:
    return Turn(
        start=trace.start_time_unix_nano,
        trace_id=trace.trace_id,
        digest=trace.digest,
        offset=record.position.offset,
    )
