"""The shell around the open sessions: poll, score what is next of every session, write once per batch.

    batch -> backlog -> [one record of each session] -> workers -> sessions -> one write: signals, state, commit

It waits and decides nothing; the open sessions decide, in the order of the records. Only a record that takes long is
passed, by those of other sessions; the commit stays before it, and what was written after it is a repeat
when it is read again (rules 4 and 7).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager

from collector.base.errors import RecordTooLarge, Undecodable
from collector.base.retry import Retry, Sleep
from collector.base.telemetry import Telemetry
from collector.base.time_slice import TimeSlice
from collector.config.tree import Windows
from collector.log.consumer import Consumer
from collector.log.port import (
    SESSIONS,
    TRACES,
    Assigned,
    Batch,
    Commit,
    Keyed,
    Log,
    New,
    Position,
    Record,
    takes_counts,
)
from collector.reading.port import Workers
from collector.records.sessions import SessionsTopic, decode_sessions
from collector.records.trace_views import SummarisedTrace, decode_summarised
from collector.records.traces import TraceReader, VerdictRecord
from collector.scoring.backlog import WAITING, Backlog, Waiting
from collector.scoring.effects import Effects, Task, WriteBatch
from collector.scoring.families import ScoringFamilies
from collector.scoring.held_session import AWAKE, Packer
from collector.scoring.open_sessions import OpenSessions
from collector.scoring.rules import Rules
from collector.scoring.score_task import ScoredTask, score_task
from collector.scoring.sliding_window import ordered_start
from evaluators.model import SessionClosed

_BATCH = 32
"""Records of one poll."""
_POLL = 0.5
"""Seconds that a poll waits for records: how late a session may close by the clock."""
_BUSY_POLL = 0.02
"""The same while workers score: how late outcomes may be."""
PATIENCE = 0.05
"""Seconds without an outcome after which records pass those under way: a trace mostly takes a few milliseconds."""


class Scorer(Consumer):
    """Reads `traces`, keeps the sessions of its partitions, publishes signals."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        log: Log,
        workers: Workers,
        rules: Rules,
        windows: Windows,
        telemetry: Telemetry,
        share: float = 0.5,
        redact: bool = False,
        group: str = "scoring",
        sleep: Sleep = asyncio.sleep,
        patience: float = PATIENCE,
        awake: int = AWAKE,
    ) -> None:
        """`share`: of the records that are scored at once, what one service may have.

        `patience`: seconds without an outcome, after which records are read on while workers score.
        `awake`: bytes that sessions take which are not packed.
        """
        super().__init__(
            log=log,
            group=group,
            topic=TRACES,
            retry=Retry("Scoring", sleep),
            telemetry=telemetry,
            max_records=_BATCH,
            timeout=_POLL,
        )
        self._workers = workers
        self._rules = rules
        self._limits = windows.session
        self._telemetry = telemetry
        self._families = ScoringFamilies(telemetry)
        self._sessions: dict[int, OpenSessions] = {}
        """By partition."""
        self._batch = WriteBatch(joined=takes_counts(log), redact=redact)
        self._patience = patience
        self._awake = awake
        self._may_pass = False
        """Whether records may pass those under way: no outcome came for a while, and not all have come since."""
        self._backlog = Backlog(share)
        self._under_way: dict[asyncio.Task[ScoredTask], Waiting] = {}
        self._committed: dict[int, int] = {}
        """By partition: the offset from which a new owner would read."""
        self._is_draining = False
        self._slice = TimeSlice()

    async def drain(self, reason: SessionClosed = "idle") -> None:
        """Read `traces` to the end, then close every session for that reason. Call it when `run` has ended.

        The clock closes no session meanwhile, only the log times of records do. An outage of the log is waited out.
        """
        self._retry.stopping = asyncio.Event()
        self._is_draining = True
        try:
            async with self._joined():
                await self._read_to_end()
                while len(self._backlog):
                    await self._advance()
                for sessions in self._sessions.values():
                    await self._apply(sessions, sessions.close_all(reason))
                await self.commit()
                # The first write commits past the closed sessions, which releases the tombstones of their heads.
                await self.commit()
        finally:
            self._is_draining = False

    @asynccontextmanager
    async def _joined(self) -> AsyncGenerator[None]:
        async with super()._joined():
            try:
                yield
            finally:
                await self._cancel([*self._under_way])

    def join(self) -> None:
        """Join the group without any session."""
        super().join()
        self._sessions.clear()
        self._backlog.clear()
        self._may_pass = False
        self._batch.clear()

    async def wait_for_capacity(self) -> None:
        """See `Consumer`: the records that are not done are bounded."""
        while len(self._backlog) >= WAITING:
            await self._advance()
            await self.commit()
        self._timeout = _BUSY_POLL if self._under_way else _POLL

    async def revoke(self, partition: int) -> None:
        """Forget the partition's sessions; they wait in the log for the next owner."""
        await self._cancel(
            [
                task
                for task, each in self._under_way.items()
                if each.record.position.partition == partition
            ]
        )
        self._backlog.forget(partition)
        self._sessions.pop(partition, None)
        self._batch.forget(partition)

    async def _cancel(self, tasks: Collection[asyncio.Task[ScoredTask]]) -> None:
        for task in tasks:
            del self._under_way[task]
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # it does not matter any more: what the task scored is read again

    async def assign(self, assigned: Assigned) -> None:
        """Read the partition's sessions back (rule 5)."""
        self._committed[assigned.partition] = assigned.offset or 0
        self._sessions[assigned.partition] = await self._restored(assigned.partition)

    async def take(self, batch: Batch) -> None:
        """Score what is next of every session; at the end of a partition, its sessions close by the clock."""
        for record in batch.records:
            partition, offset = record.position.partition, record.position.offset
            if (sessions := self._sessions.get(partition)) is not None:
                sessions.arrive(offset)
                self._backlog.add(record)
        await self._advance()
        if not self._is_draining:
            for partition, now in batch.ends.items():
                if (sessions := self._sessions.get(partition)) is not None:
                    await self._apply(sessions, sessions.close_due(now))
        self._families.sessions_active.set(sum(map(len, self._sessions.values())))
        self._families.sessions_bytes.set(sum(each.size for each in self._sessions.values()))
        self._families.records_waiting.set(len(self._backlog))

    async def finish(self) -> None:
        """Write what workers answer at once; the rest waits in the log."""
        await self._advance()
        await super().finish()

    async def commit(self) -> None:
        """Write everything decided so far, however long the log takes; state in memory is applied once."""
        records, commits = self._batch.records, self._offsets.commits()
        if not records and not commits:
            return
        await self._retry.log("write signals", lambda: self._write(records, commits))
        self._offsets.committed(commits)
        self._committed |= {each.partition: each.offset for each in commits}
        self._batch.clear()
        for partition, sessions in self._sessions.items():
            dropped = sessions.committed(self._committed[partition])
            self._batch.add_changes(dropped, partition=partition)

    async def _write(self, records: Sequence[New], commits: Sequence[Commit]) -> None:
        try:
            await self._log_port.write(records, commits)
        except RecordTooLarge:
            await self._write_singly(records)
            await self._log_port.write((), commits)

    async def _write_singly(self, records: Sequence[New]) -> None:
        """One record among many can never be written: name it and pass it over."""
        for record in records:
            try:
                await self._log_port.write((record,))
            except RecordTooLarge as error:
                self._poison.too_large(record.topic, record.key, error)

    async def _restored(self, partition: int) -> OpenSessions:
        sessions = OpenSessions(
            partition=partition,
            rules=self._rules,
            limits=self._limits,
            partitions=max(1, self._log_port.partitions(TRACES)),
            waits=lambda key, offset: self._backlog.waits(partition, key, offset),
            packer=self._packer(partition),
            awake=self._awake,
        )
        state = await self._retry.log("read sessions", lambda: self._replayed(partition))
        self._batch.add_changes(sessions.restore(state.values()), partition=partition)
        return sessions

    def _packer(self, partition: int) -> Packer:
        log = self._log_port

        def read_back(key: bytes) -> bytes | None:
            record = log.newest(SESSIONS, partition, key) if isinstance(log, Keyed) else None
            return None if record is None else record.value

        return Packer(
            self._rules,
            self._limits,
            read_back=read_back if isinstance(log, Keyed) else None,
            lost=self._families.session_texts_lost.inc,
        )

    async def _replayed(self, partition: int) -> dict[bytes, SessionsTopic]:
        state: dict[bytes, SessionsTopic] = {}
        async for record in self._log_port.replay(SESSIONS, partition):
            state.pop(record.key, None)
            if not record.value:
                continue
            try:
                state[record.key] = decode_sessions(record.value)
            except Undecodable as error:
                self._poison.unprocessable(record.position, error)
        return state

    async def _advance(self) -> None:
        """Score until nothing is left to, or no outcome has come for a while; when draining, to the end."""
        patience = None if self._is_draining else self._patience
        while True:
            while (each := self._next()) is not None:
                await self._begin(each)
                await self._slice.give_way()
            if not self._under_way:
                self._may_pass = False
                return
            done, _ = await asyncio.wait(self._under_way, timeout=patience)
            if not done and self._may_pass:
                return
            self._may_pass = self._may_pass or not done
            await self._apply_outcomes(done)

    def _next(self) -> Waiting | None:
        return self._backlog.next(self._has_room, in_order=not self._may_pass)

    def _has_room(self, record: Record) -> bool:
        sessions = self._sessions[record.position.partition]
        return sessions.has_room(record.key, record.position.offset, may_pass=self._may_pass)

    async def _begin(self, each: Waiting) -> None:
        """Apply a verdict, or place a trace and hand it to the workers."""
        record = each.record
        sessions = self._sessions[record.position.partition]
        task = None
        if each.is_let_go:
            again = await self._get(record.position)
            if again is None:
                self._families.trace_records_dropped.labels("expired").inc()
            record = again
        if record is not None and (subject := self._decoded(record)) is not None:
            task = await self._meet(sessions, record, subject)
        if task is None:
            await self._settle(sessions, each)
            return
        self._under_way[asyncio.create_task(self._score(sessions.partition, task))] = each

    async def _score(self, partition: int, task: Task) -> ScoredTask:
        reader = TraceReader(self._get, partition, self._summarised)
        takers = self._rules.history_takers
        return await score_task(task, reader, workers=self._workers, history_takers=takers)

    async def _apply_outcomes(self, done: Collection[asyncio.Task[ScoredTask]]) -> None:
        """Apply what came, in the order of the records."""
        for task in sorted(done, key=lambda task: self._under_way[task].number):
            scored = task.result()
            each = self._under_way.pop(task)
            sessions = self._sessions[each.record.position.partition]
            effects = sessions.finish(scored.task, scored.outcomes, scored.rescored)
            await self._apply(sessions, [effects])
            await self._settle(sessions, each)
            await self._slice.give_way()

    async def _settle(self, sessions: OpenSessions, each: Waiting) -> None:
        position = each.record.position
        low = self._backlog.done(each)
        if low is not None:
            self._offsets.done(Position(position.topic, position.partition, low - 1))
        await self._apply(sessions, sessions.settle(each.record.key))

    def _decoded(self, record: Record) -> SummarisedTrace | VerdictRecord | None:
        """The record's trace or verdict; None: it is of another kind, or can never be processed."""
        try:
            subject = decode_summarised(record, self._rules.summariser)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return None
        return subject if isinstance(subject, SummarisedTrace | VerdictRecord) else None

    def _summarised(self, record: Record) -> SummarisedTrace | None:
        found = decode_summarised(record, self._rules.summariser)
        return found if isinstance(found, SummarisedTrace) else None

    async def _meet(
        self, sessions: OpenSessions, record: Record, subject: SummarisedTrace | VerdictRecord
    ) -> Task | None:
        """Apply a verdict, or place a trace; None: there is nothing to score."""
        key, offset, now = record.key, record.position.offset, record.time
        await self._retry.log("read a session", lambda: _woken(sessions, key))
        if isinstance(subject, VerdictRecord):
            effects = sessions.on_verdict(subject, key=key, offset=offset, now=now)
            await self._apply(sessions, effects)
            return None
        await self._apply(sessions, sessions.make_room(subject, key=key, offset=offset, now=now))
        try:
            task = sessions.take(subject, key=key, offset=offset, now=now)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return None
        if isinstance(task, str):
            self._families.trace_records_dropped.labels(task).inc()
            return None
        entry = task.entry
        if task.earlier is None:
            self._telemetry.count_service(entry.service, now)
            if ordered_start(entry) < entry.turn.start_time_unix_nano:
                label = self._telemetry.service(entry.service)
                self._families.starts_clamped.labels(label).inc()
        return task

    async def _get(self, position: Position) -> Record | None:
        return await self._retry.log("fetch a trace", lambda: self._log_port.get(position))

    async def _apply(self, sessions: OpenSessions, effects: Iterable[Effects]) -> None:
        for each in effects:
            self._batch.add(each, partition=sessions.partition)
            if each.closed is not None:
                service, reason = each.closed
                label = self._telemetry.service(service)
                self._families.sessions_closed.labels(label, reason).inc()
            if self._batch.is_large:
                await self.commit()


async def _woken(sessions: OpenSessions, key: bytes) -> None:
    sessions.wake(key)
