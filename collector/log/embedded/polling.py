"""The reader of every log that lives in this process: it owns all partitions and waits for commits on the loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import NamedTuple, Protocol

from collector.errors import LogUnavailable
from collector.log.commits import Committed
from collector.log.port import Assigned, Batch, Record

BATCH_BYTES = 8 << 20
"""A poll returns at most this much, or one record."""
SLICE_BYTES = 1 << 20
"""Read without giving the event loop a turn."""
FOREVER = sys.maxsize
LINGER = 0.025
"""Seconds that news may wait for more of it: a wake-up, a batch and a commit cost far more than a record."""


class Slice(NamedTuple):
    """Records in order; `end`: the partition holds no more."""

    records: Sequence[Record]
    end: bool


class Source(Protocol):
    """What a reader needs of its log."""

    def committed(self, group: str, topic: str, partition: int) -> Committed:
        """Where the group goes on."""
        ...

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        ...

    def end_time(self) -> float:
        """The time that no record which a later `slice` does not show can be older than."""
        ...

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = 256
    ) -> Slice:
        """At most `most` records and about SLICE_BYTES, of the offsets from `since` to below `end`."""
        ...

    def passed(self, topic: str, partition: int) -> None:
        """A reader has moved on in the partition."""
        ...


class PollingReader:
    """See `port.Reader`."""

    def __init__(
        self,
        source: Source,
        group: str,
        topic: str,
        *,
        closed: Callable[[PollingReader], None],
        linger: float = 0.0,
    ) -> None:
        self.group = group
        self.topic = topic
        self._source = source
        self._closed = closed
        self._linger = linger
        self._next_look = 0.0
        self._positions: dict[int, int] = {}
        self._turn = 0
        self._news = asyncio.Event()
        self._open = True

    def position(self, partition: int) -> int:
        """The offset that it goes on from; 0 before it owns the partition."""
        return self._positions.get(partition, 0)

    def wake(self) -> None:
        """Something was appended to the topic."""
        self._news.set()

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        """See `port.Reader.poll`.

        Raises:
            LogUnavailable: the reader or its log is closed, or the log cannot be read now.
        """
        if not self._open:
            return self._revoke()
        if not self._positions:
            return self._assign()
        await self._pace(timeout)
        batch = await self._collect(max_records)
        if batch.records or not await self._wait(timeout):
            return batch
        await self._pace(timeout)
        return await self._collect(max_records) if self._open else self._revoke()

    async def close(self) -> None:
        """Give the partitions back. A poll that waits returns them as revoked."""
        self._open = False
        self._news.set()
        self._closed(self)

    def _assign(self) -> Batch:
        assigned: list[Assigned] = []
        for partition in range(self._source.partitions(self.topic)):
            offset, metadata = self._source.committed(self.group, self.topic, partition)
            assigned.append(Assigned(partition=partition, offset=offset, metadata=metadata))
            self._positions[partition] = offset or 0
        return Batch(assigned=tuple(assigned))

    def _revoke(self) -> Batch:
        if not self._positions:
            raise LogUnavailable("the reader is closed")
        revoked = tuple(self._positions)
        self._positions.clear()
        return Batch(revoked=revoked)

    async def _pace(self, timeout: float) -> None:
        """Look at most every `linger` seconds, unless the last look left something behind."""
        pause = min(self._next_look - asyncio.get_running_loop().time(), timeout)
        if pause > 0:
            await asyncio.sleep(pause)

    async def _wait(self, timeout: float) -> bool:
        """Wait for news; True when it is worth looking again, for records or for later ends."""
        if timeout <= 0:
            return False
        try:
            async with asyncio.timeout(timeout):
                await self._news.wait()
        except TimeoutError:
            pass
        return True

    async def _collect(self, max_records: int) -> Batch:
        self._news.clear()
        haul = _Haul(max_records)
        for partition in self._rotation():
            await self._take(partition, haul)
            if haul.full:
                break
        # Positions move only when the batch is handed over: a cancelled poll loses nothing.
        self._positions.update(haul.positions)
        now = asyncio.get_running_loop().time()
        self._next_look = now if haul.full else now + self._linger
        for partition in haul.positions:
            self._source.passed(self.topic, partition)
        return Batch(records=haul.records, ends=haul.ends)

    async def _take(self, partition: int, haul: _Haul) -> None:
        since = self._positions[partition]
        while not haul.full:
            time = self._source.end_time()
            records, end = self._source.slice(self.topic, partition, since, most=haul.room)
            if records:
                since = haul.add(partition, records)
            if end:
                haul.ends[partition] = max(time, records[-1].time) if records else time
                return
            await asyncio.sleep(0)

    def _rotation(self) -> list[int]:
        """The partitions, another one first each time, so that a busy one starves none."""
        self._turn = (self._turn + 1) % len(self._positions)
        order = list(self._positions)
        return order[self._turn :] + order[: self._turn]


class _Haul:
    """What one poll has gathered."""

    def __init__(self, max_records: int) -> None:
        self.records: list[Record] = []
        self.positions: dict[int, int] = {}
        self.ends: dict[int, float] = {}
        self._max_records = max_records
        self._size = 0

    @property
    def room(self) -> int:
        """Records that may still come."""
        return self._max_records - len(self.records)

    @property
    def full(self) -> bool:
        """Nothing more in this poll."""
        return self.room <= 0 or self._size >= BATCH_BYTES

    def add(self, partition: int, records: Sequence[Record]) -> int:
        """Take records in; the offset to go on from."""
        self.records.extend(records)
        self._size += sum(len(record.value) for record in records)
        self.positions[partition] = records[-1].position.offset + 1
        return self.positions[partition]


async def replay(
    source: Source, topic: str, partition: int, since: int, end: int
) -> AsyncIterator[Record]:
    """The records of the offsets from `since` to below `end`; nothing is held open between two of them."""
    at_end = False
    while not at_end:
        records, at_end = source.slice(topic, partition, since, end=end)
        for record in records:
            yield record
        if records:
            since = records[-1].position.offset + 1
        await asyncio.sleep(0)
