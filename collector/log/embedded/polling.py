"""Reading an embedded log: its readers own every partition and wait for appends on the event loop; log time."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from collector.base.clock import Clock, next_tick
from collector.base.errors import LogUnavailable
from collector.log.commits import Committed
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.port import (
    COMPACTED,
    TOPICS,
    WINDOWS,
    Assigned,
    Batch,
    Lag,
    Position,
    Range,
    Record,
)

BATCH_BYTES = 8 << 20  # a poll returns at most this much, or one record
SLICE_BYTES = 1 << 20  # bytes that are read without yielding to the event loop
FOREVER = sys.maxsize
LINGER = 0.05
"""Seconds that an append may wait for others: a wake-up, a batch and a commit cost far more than a record."""


class Slice(NamedTuple):
    """Records in order. `end`: the partition holds no more."""

    records: Sequence[Record]
    end: bool


class Unfinished(NamedTuple):
    """Offsets of one partition, from `low` to below `end`."""

    partition: int
    low: int
    end: int


class EmbeddedLog:
    """What the logs of one process have in common (see `port.Log`): each of their readers owns every partition.

    `linger`: seconds that an append may wait for others at least.
    """

    counts_offsets = True
    reads_parts = False

    def __init__(self, time: SharedLogTime, *, partitions: int, linger: float = 0.0) -> None:
        self._time = time
        self._partitions = partitions
        self._linger = linger
        self._readers: set[PollingReader] = set()

    @property
    def end_offsets(self) -> Mapping[TopicPartition, int]:
        """By partition, the offset that its next record will have; none of an empty one."""
        raise NotImplementedError

    def committed(self, group: str, topic: str, partition: int) -> Committed:
        raise NotImplementedError

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = 256
    ) -> Slice:
        """At most `most` records and about SLICE_BYTES, of the offsets from `since` to below `end`."""
        raise NotImplementedError

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> PollingReader:
        if self._reader_of(group, topic) is not None:
            raise ValueError(f"group `{group}` reads `{topic}` already")
        reader = self._reader(group, topic, max(self._linger, linger))
        self._readers.add(reader)
        return reader

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        end = self.end_offsets.get((topic, partition), 0)
        return self._replayed(topic, partition, since or 0, end)

    async def get(self, position: Position) -> Record | None:
        topic, partition, offset = position
        records = self.slice(topic, partition, offset, end=offset + 1, most=1).records
        return records[0] if records else None

    async def values_of(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        del topic
        return [None for _ in ranges]

    async def end(self, topic: str, partition: int) -> int:
        return self.end_offsets.get((topic, partition), 0)

    def partitions(self, topic: str) -> int:
        if topic not in TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        return 1 if topic == WINDOWS else self._partitions

    async def backlog(self, group: str, topic: str) -> int:
        return (await self.lag(group, topic)).records

    async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag:
        return self._lag(topic, self._unfinished(group, topic, unread=unread))

    def begin_shutdown(self) -> None:
        """See `port.Log.begin_shutdown`: nothing here ever waits for a server."""

    def end_time(self) -> float:
        """Log time: no record that only a later `slice` shows is older."""
        return self._time.end()

    def passed(self, topic: str, partition: int) -> None:
        """A reader has moved on in the partition."""

    def left(self, reader: PollingReader) -> None:
        self._readers.discard(reader)

    def _reader(self, group: str, topic: str, linger: float) -> PollingReader:
        return PollingReader(self, group, topic, linger=linger)

    def _reader_of(self, group: str, topic: str) -> PollingReader | None:
        return next((r for r in self._readers if (r.group, r.topic) == (group, topic)), None)

    def _wake_readers(self, topics: Collection[str]) -> None:
        for reader in self._readers:
            if reader.topic in topics:
                reader.wake()

    async def _close_readers(self) -> None:
        for reader in tuple(self._readers):
            await reader.close()

    async def _replayed(
        self, topic: str, partition: int, since: int, end: int
    ) -> AsyncIterator[Record]:
        """The records of the offsets from `since` to below `end`. Holds no snapshot open between two of them."""
        at_end = False
        while not at_end:
            records, at_end = self.slice(topic, partition, since, end=end)
            for record in records:
                yield record
            if records:
                since = records[-1].position.offset + 1
            await asyncio.sleep(0)

    def _unfinished(self, group: str, topic: str, *, unread: bool) -> list[Unfinished]:
        """By partition, from the group's commit (`unread`: from its reader's place) to the end; none that is empty."""
        reader = self._reader_of(group, topic)
        found: list[Unfinished] = []
        for partition in range(self.partitions(topic)):
            low = self.committed(group, topic, partition).offset or 0
            if unread and reader is not None:
                low = max(low, reader.position(partition))
            end = self.end_offsets.get((topic, partition), 0)
            if low < end:
                found.append(Unfinished(partition, low, end))
        return found

    def _lag(self, topic: str, waiting: Iterable[Unfinished]) -> Lag:
        records, times = 0, list[float]()
        for each in waiting:
            found = self._first(topic, each)
            if found is not None:
                records += each.end - found[0]
                times.append(found[1])
        return Lag(records, min(times, default=None))

    def _first(self, topic: str, waiting: Unfinished) -> tuple[int, float] | None:
        """The first offset and the time of the oldest record in these offsets; None: all were deleted."""
        _, low, end = waiting
        records = self.slice(topic, waiting.partition, low, end=end, most=1).records
        return (records[0].first, records[0].time) if records else None


class PollingReader:
    def __init__(
        self,
        source: EmbeddedLog,
        group: str,
        topic: str,
        *,
        linger: float = 0.0,
    ) -> None:
        self.group = group
        self.topic = topic
        self._source = source
        self._linger = linger
        self._next_look = 0.0
        self._positions: dict[int, int] = {}
        self._has_place: set[int] = set()
        """Partitions in which the group has committed or read: a gap behind that place is a loss."""
        self._rotated = 0
        self._appended = asyncio.Event()
        self._has_read_all = False
        """The last look came to the end of every partition: only an append, or a later end, is worth another one."""
        self._open = True

    def position(self, partition: int) -> int:
        """The offset that it goes on from; 0 before it owns the partition."""
        return self._positions.get(partition, 0)

    def wake(self) -> None:
        self._appended.set()

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        """See `port.Reader.poll`.

        Raises LogUnavailable: the reader or its log is closed, or the log cannot be read now.
        """
        if not self._open:
            return self._revoke()
        if not self._positions:
            return self._assign()
        if self._appended.is_set() or not self._has_read_all or timeout <= 0:
            await self._pace(timeout)
            batch = await self._collect(max_records)
            if batch.records or timeout <= 0:
                return batch
        await self._wait(timeout)
        await self._pace(timeout)
        return await self._collect(max_records) if self._open else self._revoke()

    async def close(self) -> None:
        """A poll that waits returns its partitions as revoked."""
        self._open = False
        self._appended.set()
        self._source.left(self)

    def _assign(self) -> Batch:
        assigned: list[Assigned] = []
        for partition in range(self._source.partitions(self.topic)):
            offset, metadata = self._source.committed(self.group, self.topic, partition)
            assigned.append(Assigned(partition=partition, offset=offset, metadata=metadata))
            self._positions[partition] = offset or 0
            if offset is not None:
                self._has_place.add(partition)
        return Batch(assigned=tuple(assigned))

    def _revoke(self) -> Batch:
        if not self._positions:
            raise LogUnavailable("the reader is closed")
        revoked = tuple(self._positions)
        self._positions.clear()
        return Batch(revoked=revoked)

    async def _pace(self, timeout: float) -> None:
        """Wait until `linger` seconds after the last look, unless that one was at its limits."""
        pause = min(self._next_look - asyncio.get_running_loop().time(), timeout)
        if pause > 0:
            await asyncio.sleep(pause)

    async def _wait(self, timeout: float) -> None:
        """Wait for an append or the timeout; then there may be records, and there are later ends."""
        await next_tick(timeout, self._appended)

    async def _collect(self, max_records: int) -> Batch:
        self._appended.clear()
        self._has_read_all = False
        buffer = _PollBuffer(max_records)
        for partition in self._rotation():
            await self._take(partition, buffer)
            if buffer.full:
                break
        # Positions move only when the batch is handed over: a cancelled poll loses nothing.
        self._positions.update(buffer.positions)
        self._has_read_all = not buffer.full
        now = asyncio.get_running_loop().time()
        self._next_look = now if buffer.full else now + self._linger
        self._has_place |= buffer.positions.keys()
        for partition in buffer.positions:
            self._source.passed(self.topic, partition)
        return Batch(records=buffer.records, ends=buffer.ends, lost=buffer.lost)

    async def _take(self, partition: int, buffer: _PollBuffer) -> None:
        since = self._positions[partition]
        while not buffer.full:
            time = self._source.end_time()
            records, end = self._source.slice(self.topic, partition, since, most=buffer.space)
            if records:
                self._note_gap(partition, records[0].first - since, buffer)
                since = buffer.add(partition, records)
            if end:
                buffer.ends[partition] = max(time, records[-1].time) if records else time
                return
            await asyncio.sleep(0)

    def _note_gap(self, partition: int, gap: int, buffer: _PollBuffer) -> None:
        """Count what was dropped before the reader came to it; assembly does not ask: it has released its spans."""
        is_known = partition in self._has_place or partition in buffer.positions
        if gap > 0 and self.topic not in COMPACTED and is_known:
            buffer.lost[partition] = buffer.lost.get(partition, 0) + gap

    def _rotation(self) -> list[int]:
        """The partitions, beginning with another one each time, so that a busy one starves no other."""
        self._rotated = (self._rotated + 1) % len(self._positions)
        order = list(self._positions)
        return order[self._rotated :] + order[: self._rotated]


@dataclass(slots=True)
class _PollBuffer:
    """Collects the records of one poll, up to its limits."""

    max_records: int
    records: list[Record] = field(default_factory=list[Record])
    positions: dict[int, int] = field(default_factory=dict[int, int])
    ends: dict[int, float] = field(default_factory=dict[int, float])
    lost: dict[int, int] = field(default_factory=dict[int, int])
    _size: int = 0

    @property
    def space(self) -> int:
        return self.max_records - len(self.records)

    @property
    def full(self) -> bool:
        return self.space <= 0 or self._size >= BATCH_BYTES

    def add(self, partition: int, records: Sequence[Record]) -> int:
        self.records.extend(records)
        self._size += sum(len(record.value) for record in records)
        self.positions[partition] = records[-1].position.offset + 1
        return self.positions[partition]


class SharedLogTime:
    """The machine's clock, made to never go back. The writing thread and the reading loop share it, hence the lock.

    No record that becomes visible after a call of `end` is older than the time it returned.
    """

    def __init__(self, clock: Clock, last: float = 0.0) -> None:
        self._clock = clock
        self._last = last
        self._in_flight: float | None = None
        self._lock = threading.Lock()

    def begin(self) -> float:
        """The time of every record of the transaction that begins now; `finish` must follow."""
        with self._lock:
            self._in_flight = self._now()
            return self._in_flight

    def finish(self) -> None:
        with self._lock:
            self._in_flight = None

    def end(self) -> float:
        """No record older than this can become visible any more. To be read before the records are."""
        with self._lock:
            return self._now() if self._in_flight is None else self._in_flight

    def _now(self) -> float:
        self._last = max(self._last, self._clock())
        return self._last
