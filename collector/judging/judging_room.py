"""The room: reads `traces`, has every due subject judged, appends one verdict for each.

    record -> due? -> the judge process -> one write: verdict, commit (DESIGN 4, rule 4)

At most `judge.concurrency` subjects are under way; the others wait in the log. The commit is the low water of what is
under way, so after a crash these are read again, and those that have their verdict are known by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from collector.clock import Clock
from collector.config.tree import JudgeConfig
from collector.errors import RecordTooLarge, Retryable, Undecodable
from collector.judging.budget import DAY, Budget
from collector.judging.errors import JudgeDiedError, JudgeLateError
from collector.judging.frames import Done, Job, SessionJob, TraceJob
from collector.judging.judges import Judges
from collector.judging.progress import Progress
from collector.judging.read_back import previous_of, traces_of
from collector.judging.sample import is_sampled
from collector.judging.turns import SeenTurn, Turns
from collector.log.port import TRACES, Commit, Log, New, Position, Reader, Record
from collector.records.codec import encode
from collector.records.session_key import split_session_key
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
from evaluators.outcome import failed
from evaluators.plan import Configured, is_embedded, sees_history
from evaluators.resources import WINDOW

BATCH = 64
_POLL = 0.5
_COMMIT_EVERY = 1.0
_log = logging.getLogger(__name__)


class JudgingRoom:
    """See the module."""

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
        self._trace_log = log
        self._judges = judges
        self._judged = {
            scope: tuple(each for each in judged if each.spec.scope == scope)
            for scope in ("trace", "session")
        }
        compares = any(is_embedded(each) and sees_history(each) for each in judged)
        self._reach = WINDOW if compares else 0
        self._config = config
        self._budget = budget
        self._telemetry = telemetry
        self._clock = clock
        self._group = group
        self._session_age = session_age
        self._partitions: dict[int, Progress] = {}
        self._turns = Turns()
        self._slots = asyncio.Semaphore(config.concurrency)
        self._committed_at = clock()
        self._at_end: set[int] = set()
        self._retry = Retry("Judging", sleep, last_attempts=1)

    async def run(self, stopping: asyncio.Event) -> None:
        """Judge until told to stop; what is under way then is judged after the next start."""
        self._retry.stopping = stopping
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
        self._retry.stopping = asyncio.Event()
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
        batch = await self._retry.log(
            "read traces", lambda: reader.poll(max_records=BATCH, timeout=_POLL)
        )
        for partition in batch.revoked:
            self._partitions.pop(partition, None)
        for assigned in batch.assigned:
            await self._restore(assigned.partition, assigned.offset or 0)
        for record in batch.records:
            await self._take(record, subjects)
        self._at_end = set(batch.ends)
        await self._commit_due()

    async def _restore(self, partition: int, offset: int) -> None:
        """Read back what today's verdicts cost, and which subjects above the commit have theirs (rule 6).

        And below the commit the turns of sessions that may still be open: later traces have their place after them.
        """
        progress = self._partitions[partition] = Progress(offset)
        total = self._trace_log.partitions(TRACES)
        self._budget.share = len(self._partitions) / max(1, total)
        now = self._clock()
        oldest = min(now // DAY * DAY, now - self._session_age)
        async for record in self._trace_log.replay(TRACES, partition):
            if record.time < oldest and record.position.offset < offset:
                continue
            try:
                self._read_back(record, progress, is_done=record.position.offset < offset)
            except Undecodable:
                continue  # was named when its turn came, or will be

    def _read_back(self, record: Record, progress: Progress, *, is_done: bool) -> None:
        found = decode_raw_trace(record.value)
        if isinstance(found, VerdictRecord):
            progress.judged(found.subject, found.digest)
            self._budget.restore(
                record.time, calls=found.calls, usd=found.cost_usd, now=self._clock()
            )
        elif isinstance(found, SessionRecord):
            if is_done:
                self._turns.closed(record.key, found.traces)
        elif isinstance(found, RawTrace) and is_done and self._judged["trace"]:
            head = decode_judged_trace(found.trace)
            if head.is_judged:
                self._turns.place(record.key, _turn(record, head))

    async def _take(self, record: Record, subjects: asyncio.TaskGroup) -> None:
        progress = self._partitions.get(record.position.partition)
        if progress is None:
            return
        offset = record.position.offset
        try:
            found = decode_raw_trace(record.value)
            if isinstance(found, RawTrace):
                await self._take_trace(record, found, progress, subjects)
            elif isinstance(found, SessionRecord):
                self._turns.closed(record.key, found.traces)
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
        head = decode_judged_trace(found.trace)
        if not self._judged["trace"] or not head.is_judged:
            return
        turn = _turn(record, head)
        place = self._turns.place(record.key, turn)
        if progress.is_judged(head.trace_id, head.digest) or not self._is_due(record):
            return
        before = self._turns.before(record.key, turn, self._reach)
        session = split_session_key(record.key)
        await self._begin(record, progress, head.trace_id, head.digest)
        subjects.create_task(self._trace(record, found, head, session, place, before, progress))

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
        head: JudgedTrace,
        session: tuple[str, str],
        turn: int | None,
        before: Sequence[SeenTurn],
        progress: Progress,
    ) -> None:
        history = await previous_of(self._get, record.position.partition, before)
        service, session_id = session
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
            lambda number: TraceJob(
                id=number, owner=owner, trace=found.trace, turn=turn, history=history
            ),
        )

    async def _session(self, record: Record, found: SessionRecord, progress: Progress) -> None:
        traces = await traces_of(self._get, record.position.partition, found.traces)
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

    async def _get(self, position: Position) -> Record | None:
        return await self._retry.log("fetch a trace", lambda: self._trace_log.get(position))

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
            await self._retry.log("write a verdict", lambda: self._trace_log.write([new], commits))
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
            await self._retry.log("commit", lambda: self._trace_log.write((), commits))

    def _commit(self, partition: int, offset: int) -> Commit:
        return Commit(group=self._group, topic=TRACES, partition=partition, offset=offset)


class _StopError(Exception):
    """Told to stop: what is under way is cancelled."""


async def _stop_after(stopping: asyncio.Event) -> None:
    """End the group that this runs in, once told: raises _StopError."""
    await stopping.wait()
    raise _StopError


def _turn(record: Record, head: JudgedTrace) -> SeenTurn:
    return SeenTurn(
        start=head.start_time_unix_nano,
        trace_id=head.trace_id,
        digest=head.digest,
        offset=record.position.offset,
    )
