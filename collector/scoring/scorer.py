"""The shell around the open sessions: poll, take every record in order, write once per batch.

    batch -> [record -> its session: place, what only the log has of earlier turns, finish] -> one write: signals,
    state, commit

It waits for the log alone and decides nothing; the open sessions decide. What evaluators say of a trace is in its
record, or comes as a verdict.
"""

import asyncio
from collections.abc import Iterable, Sequence

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
    Log,
    New,
    Position,
    Record,
)
from collector.records.more import MoreRecord
from collector.records.sessions import SessionsTopic, SessionTurn, decode_sessions
from collector.records.trace_views import SummarisedTrace, decode_summarised
from collector.records.traces import VerdictRecord
from collector.scoring.cached_session import AWAKE, Packer
from collector.scoring.effects import Effects, PlacedTrace, WriteBatch
from collector.scoring.families import ScoringFamilies
from collector.scoring.open_sessions import Dropped, OpenSessions
from collector.scoring.rules import Rules
from collector.scoring.sliding_window import ordered_start
from collector.scoring.turn_sketches import Sketches, sketches_in
from evaluators.model import SessionClosed

_BATCH = 64  # records of one poll: what is written at once, within some tens of milliseconds
_POLL = 0.5  # seconds that a poll waits for records: how late a session may close by the clock


class Scorer(Consumer):
    """Reads `traces`, keeps the sessions of its partitions, publishes signals."""

    def __init__(
        self,
        *,
        log: Log,
        rules: Rules,
        windows: Windows,
        telemetry: Telemetry,
        redact: bool = False,
        group: str = "scoring",
        sleep: Sleep = asyncio.sleep,
        awake: int = AWAKE,
    ) -> None:
        """`awake`: bytes that sessions take which are not packed."""
        super().__init__(
            log=log,
            group=group,
            topic=TRACES,
            retry=Retry("Scoring", sleep),
            telemetry=telemetry,
            max_records=_BATCH,
            timeout=_POLL,
        )
        self._rules = rules
        self._limits = windows.session
        self._telemetry = telemetry
        self._families = ScoringFamilies(telemetry)
        self._sessions: dict[int, OpenSessions] = {}  # by partition
        self._batch = WriteBatch(joined=log.counts_offsets, redact=redact)
        self._awake = awake
        self._keeps_sketches = not log.reads_parts
        """Kafka takes a request for each record that is read back."""
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
                for sessions in self._sessions.values():
                    await self._apply(sessions, sessions.close_all(reason))
                await self.commit()
                # The first write commits past the closed sessions, which releases the tombstones of their heads.
                await self.commit()
        finally:
            self._is_draining = False

    def join(self) -> None:
        super().join()
        self._sessions.clear()
        self._batch.clear()

    async def revoke(self, partition: int) -> None:
        self._sessions.pop(partition, None)
        self._batch.forget(partition)

    async def assign(self, assigned: Assigned) -> None:
        self._committed[assigned.partition] = assigned.offset or 0
        self._sessions[assigned.partition] = await self._restored(assigned.partition)

    async def take(self, batch: Batch) -> None:
        """Take every record into its session; at the end of a partition, its sessions close by the clock."""
        for record in batch.records:
            if (sessions := self._sessions.get(record.position.partition)) is not None:
                await self._take(sessions, record)
                self._offsets.done(record.position)
                await self._slice.give_way()
        if not self._is_draining:
            for partition, now in batch.ends.items():
                if (sessions := self._sessions.get(partition)) is not None:
                    await self._apply(sessions, sessions.close_due(now))
        self._families.sessions_active.set(sum(map(len, self._sessions.values())))
        self._families.sessions_bytes.set(sum(each.size for each in self._sessions.values()))

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

    @property
    def is_at_rest(self) -> bool:
        return not any(self._sessions.values())

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
            packer=Packer(self._rules, self._limits, keeps_sketches=self._keeps_sketches),
            awake=self._awake,
        )
        state = await self._retry.log("read sessions", lambda: self._replayed(partition))
        self._batch.add_changes(sessions.restore(state.values()), partition=partition)
        return sessions

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

    async def _take(self, sessions: OpenSessions, record: Record) -> None:
        key, offset, now = record.key, record.position.offset, record.time
        try:
            subject = decode_summarised(record, self._rules.summariser)
            if isinstance(subject, VerdictRecord):
                effects = sessions.on_verdict(subject, key=key, offset=offset, now=now)
                await self._apply(sessions, effects)
            elif isinstance(subject, MoreRecord):
                await self._apply(sessions, sessions.want_more(subject))
            elif isinstance(subject, SummarisedTrace):
                room = sessions.make_room(subject, key=key, offset=offset, now=now)
                await self._apply(sessions, room)
                await self._place(
                    sessions, sessions.take(subject, key=key, offset=offset, now=now), now
                )
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
        sessions.done(offset)

    async def _place(
        self, sessions: OpenSessions, placed: PlacedTrace | Dropped, now: float
    ) -> None:
        if not isinstance(placed, PlacedTrace):
            self._families.trace_records_dropped.labels(placed).inc()
            return
        entry = placed.entry
        if placed.earlier is None:
            self._telemetry.count_service(entry.service, now)
            if ordered_start(entry) < entry.turn.start_time_unix_nano:
                label = self._telemetry.service(entry.service)
                self._families.starts_clamped.labels(label).inc()
        found = await self._sketches(sessions.partition, placed.lacking)
        await self._apply(sessions, [sessions.finish(placed, found)])

    async def _sketches(
        self, partition: int, lacking: Sequence[SessionTurn]
    ) -> dict[str, Sketches]:
        """By trace id; a turn is left out whose record has expired, or the log has another trace in its place."""
        if not lacking:
            return {}
        async with asyncio.TaskGroup() as reads:
            found = [
                (each, reads.create_task(self._read_back(partition, each))) for each in lacking
            ]
        return {
            entry.turn.trace_id: sketches
            for entry, read in found
            if (sketches := read.result()) is not None
        }

    async def _read_back(self, partition: int, entry: SessionTurn) -> Sketches | None:
        position = Position(TRACES, partition, entry.offset)
        record = await self._retry.log("fetch a trace", lambda: self._log_port.get(position))
        try:
            read = None if record is None else decode_summarised(record, self._rules.summariser)
        except Undecodable:
            return None
        if not isinstance(read, SummarisedTrace) or read.summary.turn.digest != entry.turn.digest:
            return None
        return sketches_in(read)

    async def _apply(self, sessions: OpenSessions, effects: Iterable[Effects]) -> None:
        for each in effects:
            self._batch.add(each, partition=sessions.partition)
            if each.closed is not None:
                service, reason = each.closed
                label = self._telemetry.service(service)
                self._families.sessions_closed.labels(label, reason).inc()
            if self._batch.is_large:
                await self.commit()
