"""The room: reads `traces`, has every due subject judged, appends one verdict for each.

    record -> due? -> the judge process -> one write: verdict, commit (DESIGN 4, rule 4)

At most `judge.concurrency` subjects are under way; the others wait in the log. The commit is the low water of what is
under way, so after a crash these are read again, and those that have their verdict are known by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import msgspec

from collector.clock import Clock
from collector.config import Judge
from collector.errors import RecordTooLarge, Retryable, Undecodable
from collector.judging.budget import DAY, Budget
from collector.judging.errors import JudgeDiedError, JudgeLateError
from collector.judging.frames import Done, Job, SessionJob, TraceJob
from collector.judging.progress import Progress
from collector.judging.sample import is_sampled
from collector.judging.subjects import RawTrace, TraceHead, decode_head, decode_subject
from collector.judging.turns import Turns
from collector.log import TRACES, Commit, Log, New, Position, Reader, Record
from collector.records import SessionRecord, VerdictRecord, encode
from collector.telemetry import Telemetry
from evaluators.model import Failure, Outcome
from evaluators.outcome import failed
from evaluators.plan import Configured

BATCH = 64
SESSION_BYTES = 64 << 20
"""Of one session's traces; what is older than fits is left out of its verdict."""
_POLL = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_COMMIT_EVERY = 1.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Judges(Protocol):
    """Whoever judges (collector/judging/process.py; tests bring their own)."""

    async def judge(self, make: Callable[[int], Job]) -> Done:
        """The verdict of a job, which is made with a number of the judge's own.

        Raises:
            JudgeDiedError: there will be none, whoever asks.
            JudgeLateError: there will be none in time.
        """
        ...

    def written(self, done: Done) -> None:
        """The verdict is in the log."""
        ...

    async def run(self) -> None:
        """Stand by until cancelled."""
        ...


class JudgingRoom:
    """See the module."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        log: Log,
        judges: Judges,
        judged: Sequence[Configured],
        config: Judge,
        budget: Budget,
        telemetry: Telemetry,
        clock: Clock,
        group: str = "judging",
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._trace_log = log
        self._judges = judges
        self._judged = {
            scope: tuple(each for each in judged if each.spec.scope == scope)
            for scope in ("trace", "session")
        }
        self._config = config
        self._budget = budget
        self._telemetry = telemetry
        self._clock = clock
        self._group = group
        self._pause = pause
        self._partitions: dict[int, Progress] = {}
        self._turns = Turns()
        self._slots = asyncio.Semaphore(config.concurrency)
        self._committed_at = clock()
        self._at_end: set[int] = set()
        self._stopping = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        """Judge until told to stop; what is under way then is judged after the next start."""
        self._stopping = stopping
        async with self.standing():
            await self._reading(stopping)

    @asynccontextmanager
    async def standing(self) -> AsyncGenerator[None]:
        """The judges stand by; around any number of `drain`."""
        async with asyncio.TaskGroup() as group:
            judges = group.create_task(self._judges.run())
            try:
                yield
            finally:
                judges.cancel()

    async def drain(self) -> None:
        """Judge everything that is in the log; within `standing`."""
        self._stopping = asyncio.Event()
        await self._reading(None)

    async def _reading(self, stopping: asyncio.Event | None) -> None:
        """Until told to stop, or without `stopping` until everything is judged."""
        self._partitions.clear()
        self._at_end.clear()
        reader = self._trace_log.read(self._group, TRACES)
        try:
            async with asyncio.TaskGroup() as subjects:
                if stopping is not None:
                    subjects.create_task(_stop_after(stopping))
                while stopping is not None or not self._is_at_end():
                    await self._step(reader, subjects)
        except* _StopError:
            pass
        except* Retryable as errors:
            _log.warning("Stopped while the log was unavailable: %s.", errors.exceptions[0])
        finally:
            await reader.close()

    def _is_at_end(self) -> bool:
        return bool(self._partitions) and self._at_end == self._partitions.keys()

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _step(self, reader: Reader, subjects: asyncio.TaskGroup) -> None:
        batch = await self._patiently(lambda: reader.poll(max_records=BATCH, timeout=_POLL))
        for partition in batch.revoked:
            self._partitions.pop(partition, None)
        for assigned in batch.assigned:
            await self._restore(assigned.partition, assigned.offset or 0)
        for record in batch.records:
            await self._take(record, subjects)
        self._at_end = set(batch.ends)
        await self._commit_due()

    async def _restore(self, partition: int, offset: int) -> None:
        """Read back what today's verdicts cost, and which subjects above the commit have theirs (rule 6)."""
        progress = self._partitions[partition] = Progress(offset)
        total = self._trace_log.partitions(TRACES)
        self._budget.share = len(self._partitions) / max(1, total)
        today = self._clock() // DAY * DAY
        async for record in self._trace_log.replay(TRACES, partition):
            if record.time < today and record.position.offset < offset:
                continue
            self._read_back(record, progress)

    def _read_back(self, record: Record, progress: Progress) -> None:
        try:
            found = decode_subject(record.value)
        except Undecodable:
            return  # named when its turn comes
        if isinstance(found, VerdictRecord):
            progress.judged(found.subject, found.digest)
            self._budget.restore(
                record.time, calls=found.calls, usd=found.cost_usd, now=self._clock()
            )

    async def _take(self, record: Record, subjects: asyncio.TaskGroup) -> None:
        progress = self._partitions.get(record.position.partition)
        if progress is None:
            return
        offset = record.position.offset
        try:
            found = decode_subject(record.value)
            if isinstance(found, RawTrace):
                await self._take_trace(record, found, progress, subjects)
            elif isinstance(found, SessionRecord):
                await self._take_session(record, found, progress, subjects)
            elif isinstance(found, VerdictRecord):
                progress.judged(found.subject, found.digest)
        except Undecodable as error:
            self._telemetry.poison_records.labels(TRACES).inc()
            _log.error(
                "A record can never be judged and was passed over: `%s` partition %d offset %d: %s.",
                *record.position,
                error,
            )
        progress.seen(offset)

    async def _take_trace(
        self, record: Record, found: RawTrace, progress: Progress, subjects: asyncio.TaskGroup
    ) -> None:
        head = decode_head(found.trace)
        if not self._judged["trace"] or not head.is_judged or not self._is_due(record):
            return
        turn = self._turns.place(record.key, head.start_time_unix_nano, head.trace_id)
        if progress.is_judged(head.trace_id, head.digest):
            return
        await self._begin(record, progress, head.trace_id, head.digest)
        subjects.create_task(self._trace(record, found, head, turn, progress))

    async def _take_session(
        self, record: Record, found: SessionRecord, progress: Progress, subjects: asyncio.TaskGroup
    ) -> None:
        is_done = progress.is_judged(found.session_id, found.digest)
        if not found.due or not self._judged["session"] or is_done or not self._is_due(record):
            return
        await self._begin(record, progress, found.session_id, found.digest)
        subjects.create_task(self._session(record, found, progress))

    def _is_due(self, record: Record) -> bool:
        """Sampled, and not so old that the desk gives the verdict itself."""
        in_time = record.time + self._config.max_lag > self._clock()
        return in_time and is_sampled(record.key, self._config.sample)

    async def _begin(self, record: Record, progress: Progress, subject: str, digest: str) -> None:
        await self._slots.acquire()
        progress.judged(subject, digest)
        progress.begin(record.position.offset)

    # --- judging -----------------------------------------------------------------------------------------------------

    async def _trace(
        self,
        record: Record,
        found: RawTrace,
        head: TraceHead,
        turn: int | None,
        progress: Progress,
    ) -> None:
        service, session_id = _split(record.key)
        owner = "/".join(("trace", service, head.trace_id, head.digest))
        verdict = VerdictRecord(
            scope="trace",
            service=service,
            session_id=session_id,
            subject=head.trace_id,
            digest=head.digest,
            outcomes=(),
        )
        await self._judge(
            record,
            progress,
            verdict,
            lambda number: TraceJob(id=number, owner=owner, trace=found.trace, turn=turn),
        )

    async def _session(self, record: Record, found: SessionRecord, progress: Progress) -> None:
        traces = await self._traces_of(record, found)
        verdict = VerdictRecord(
            scope="session",
            service=found.service,
            session_id=found.session_id,
            subject=found.session_id,
            digest=found.digest,
            outcomes=(),
        )
        owner = "/".join(("session", found.service, found.session_id, found.digest))
        await self._judge(
            record,
            progress,
            verdict,
            lambda number: SessionJob(
                id=number,
                owner=owner,
                service=found.service,
                session_id=found.session_id,
                closed=found.closed,
                traces=traces,
            ),
        )

    async def _traces_of(self, record: Record, found: SessionRecord) -> tuple[msgspec.Raw, ...]:
        """The newest traces that the log still has, as many as fit, oldest first."""
        traces: list[msgspec.Raw] = []
        size = 0
        for offset in reversed(found.traces):
            position = Position(TRACES, record.position.partition, offset)
            stored = await self._patiently(lambda at=position: self._trace_log.get(at))
            trace = None if stored is None else _trace_of(stored)
            if trace is None:
                continue
            size += len(bytes(trace))
            if size > SESSION_BYTES:
                break
            traces.append(trace)
        return tuple(reversed(traces))

    async def _judge(
        self,
        record: Record,
        progress: Progress,
        verdict: VerdictRecord,
        make: Callable[[int], Job],
    ) -> None:
        """One subject, from its job to its verdict in the log."""
        try:
            done: Done | None = None
            try:
                done = await self._judges.judge(make)
                outcomes = done.outcomes
            except JudgeLateError:
                progress.end(record.position.offset)
                return
            except JudgeDiedError as error:
                outcomes = self._failed(verdict.scope, str(error))
            verdict = msgspec.structs.replace(
                verdict,
                outcomes=outcomes,
                calls=0 if done is None else done.calls,
                cost_usd=0.0 if done is None else done.cost_usd,
            )
            await self._append(record, progress, verdict)
            if done is not None:
                self._judges.written(done)
        finally:
            self._slots.release()

    def _failed(self, scope: str, message: str) -> tuple[Outcome, ...]:
        error = Failure(type="judge_died", message=message)
        return tuple(failed(each, error) for each in self._judged[scope])

    async def _append(self, record: Record, progress: Progress, verdict: VerdictRecord) -> None:
        position = record.position
        new = New(
            topic=TRACES,
            key=record.key,
            value=encode(verdict),
            partition=position.partition,
        )
        low = progress.low_water(without=position.offset)
        commits = [self._commit(position.partition, low)] if progress.is_new(low) else []
        try:
            await self._patiently(lambda: self._trace_log.write([new], commits))
        except RecordTooLarge:
            self._telemetry.poison_records.labels(TRACES).inc()
            _log.error("A verdict is too large for the log and was dropped: %s.", position)
        progress.end(position.offset)

    # --- the log -----------------------------------------------------------------------------------------------------

    async def _commit_due(self) -> None:
        now = self._clock()
        if abs(now - self._committed_at) < _COMMIT_EVERY:
            return
        self._committed_at = now
        commits = [
            self._commit(partition, low)
            for partition, progress in self._partitions.items()
            if progress.is_new(low := progress.low_water())
        ]
        if commits:
            await self._patiently(lambda: self._trace_log.write((), commits))

    def _commit(self, partition: int, offset: int) -> Commit:
        return Commit(group=self._group, topic=TRACES, partition=partition, offset=offset)

    async def _patiently(self, ask: Callable[[], Awaitable[_T]]) -> _T:
        """The answer, however long it takes.

        Raises:
            Retryable: the room is stopping and the log still gives none.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                return await ask()
            except Retryable as error:
                if self._stopping.is_set():
                    raise
                if pause == _FIRST_PAUSE:
                    _log.warning("The log does not answer judging; trying again: %s.", error)
            await self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


class _StopError(Exception):
    """Told to stop: what is under way is cancelled."""


async def _stop_after(stopping: asyncio.Event) -> None:
    """End the group that this runs in, once told.

    Raises:
        _StopError: always.
    """
    await stopping.wait()
    raise _StopError


def _trace_of(record: Record) -> msgspec.Raw | None:
    try:
        found = decode_subject(record.value)
    except Undecodable:
        return None
    return found.trace if isinstance(found, RawTrace) else None


def _split(key: bytes) -> tuple[str, str]:
    service, _, session_id = key.decode(errors="replace").partition("\0")
    return service, session_id
