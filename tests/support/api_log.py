"""A list-backed log, just enough for readers of `traces` and `signals`."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress

from collector.log.port import Assigned, Batch, Commit, New, Position, Reader, Record


class ListLog:
    """One partition per topic, everything in memory; `time` is what the test says."""

    def __init__(self) -> None:
        self.records: dict[str, list[Record]] = defaultdict(list)
        self.commits: dict[tuple[str, str], int] = {}
        self.time = 1_700_000_000.0
        self.expired: set[Position] = set()
        self.fail_polls: list[Exception] = []
        self.changed = asyncio.Event()

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        positions: list[Position] = []
        for new in records:
            value = new.value(positions) if callable(new.value) else new.value
            positions.append(self.append(new.topic, new.key, value or b""))
        for commit in commits:
            self.commits[commit.group, commit.topic] = commit.offset
        self.changed.set()
        return positions

    def append(self, topic: str, key: bytes, value: bytes) -> Position:
        position = Position(topic, 0, len(self.records[topic]))
        self.records[topic].append(Record(position=position, key=key, value=value, time=self.time))
        self.changed.set()
        return position

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> Reader:
        return ListReader(self, group, topic)

    async def replay(
        self, topic: str, partition: int, since: int | None = None
    ) -> AsyncIterator[Record]:
        for record in list(self.records[topic])[since or 0 :]:
            yield record

    async def get(self, position: Position) -> Record | None:
        held = self.records[position.topic]
        if position in self.expired or position.offset >= len(held):
            return None
        return held[position.offset]

    def release(self, positions: Iterable[Position]) -> None:
        self.expired.update(positions)

    def partitions(self, topic: str) -> int:
        return 1

    def begin_shutdown(self) -> None: ...

    async def close(self) -> None:
        return


class ListReader:
    """Waits for the log's `changed`, never for the clock."""

    def __init__(self, log: ListLog, group: str, topic: str) -> None:
        self._log, self._group, self._topic = log, group, topic
        self._next: int | None = None

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        if self._log.fail_polls:
            raise self._log.fail_polls.pop(0)
        if self._next is None:
            offset = self._log.commits.get((self._group, self._topic))
            self._next = offset or 0
            return Batch(assigned=(Assigned(partition=0, offset=offset, metadata=None),))
        records = self._log.records[self._topic][self._next : self._next + max_records]
        if not records:
            self._log.changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(timeout, 0.05)):
                    await self._log.changed.wait()
            return Batch(ends={0: self._log.time})
        self._next += len(records)
        return Batch(records=tuple(records))

    async def close(self) -> None:
        return
