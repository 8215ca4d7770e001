"""A log of lists, one partition, that can crash at any record of any write: whole writes as the disk's, or torn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from collector.errors import LogFull, LogUnavailable, RecordTooLarge
from collector.log.port import COMPACTED, Assigned, Batch, Commit, New, Position, Record


class Killed(Exception):
    """The process ended here."""


class CrashingLog:
    """Log time is `now`, which the test moves; partition 0 of every topic."""

    def __init__(self, *, atomic: bool = True) -> None:
        self.atomic = atomic
        self.now = 0.0
        self.topics: dict[str, list[Record]] = {}
        self.tombstones: dict[tuple[str, bytes], int] = {}
        self.committed: dict[tuple[str, str], int] = {}
        self.expired: set[int] = set()
        self.fuse: int | None = None
        """How many more records and commits are stored before the process is killed."""
        self.refusals = 0
        """How many writes are refused next."""
        self.silences = 0
        """How many reads of one record fail next."""
        self.too_large: set[str] = set()
        """Topics whose records are refused for good."""
        self.writes: list[tuple[Sequence[New], Sequence[Commit]]] = []
        self.at_end: asyncio.Event | None = None
        """Set when a reader has nothing more to give."""

    def append(self, topic: str, key: bytes, value: bytes) -> int:
        """A record of the test's: at the next multiple of 100, whatever the room has written in between."""
        records = self.topics.setdefault(topic, [])
        offset = (_end(records) + 99) // 100 * 100
        records.append(
            Record(position=Position(topic, 0, offset), key=key, value=value, time=self.now)
        )
        return offset

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        if self.refusals:
            self.refusals -= 1
            raise LogFull("full")
        if any(each.topic in self.too_large for each in records):
            raise RecordTooLarge("too large")
        self.writes.append((records, commits))
        count = len(records) + len(commits)
        if self.fuse is not None and self.fuse < count:
            if not self.atomic:
                self._store(records[: self.fuse], commits[: max(0, self.fuse - len(records))])
            raise Killed
        if self.fuse is not None:
            self.fuse -= count
        return self._store(records, commits)

    def _store(self, records: Sequence[New], commits: Sequence[Commit]) -> list[Position]:
        positions: list[Position] = []
        for each in records:
            stored = self.topics.setdefault(each.topic, [])
            value = each.value(positions) if callable(each.value) else each.value
            position = Position(each.topic, 0, _end(stored))
            stored.append(
                Record(
                    position=position,
                    key=each.key,
                    value=value or b"",
                    time=self.now,
                    headers=each.headers,
                )
            )
            positions.append(position)
        for commit in commits:
            self.committed[commit.group, commit.topic] = commit.offset
        return positions

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> ListReader:
        return ListReader(self, group, topic)

    async def replay(
        self, topic: str, partition: int, since: int | None = None
    ) -> AsyncIterator[Record]:
        newest = {each.key: each for each in self.topics.get(topic, [])}
        for each in self.topics.get(topic, []):
            if topic not in COMPACTED or (newest[each.key] is each and each.value):
                yield each

    async def get(self, position: Position) -> Record | None:
        if self.silences:
            self.silences -= 1
            raise LogUnavailable("unavailable")
        if position.offset in self.expired:
            return None
        return next(each for each in self.topics[position.topic] if each.position == position)

    def release(self, positions: Iterable[Position]) -> None:
        pass

    def partitions(self, topic: str) -> int:
        return 1

    def begin_shutdown(self) -> None: ...

    async def close(self) -> None:
        pass


def _end(records: Sequence[Record]) -> int:
    return records[-1].position.offset + 1 if records else 0


class ListReader:
    """From its group's commit to the end."""

    def __init__(self, log: CrashingLog, group: str, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._next = log.committed.get((group, topic))
        self._assigned = False

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        await asyncio.sleep(0)
        if not self._assigned:
            self._assigned = True
            return Batch(assigned=(Assigned(partition=0, offset=self._next, metadata=None),))
        stored = self._log.topics.get(self._topic, [])
        start = self._next or 0
        records = [each for each in stored if each.position.offset >= start][:max_records]
        self._next = _end(records) if records else start
        is_at_end = self._next >= _end(stored)
        if is_at_end and not records and self._log.at_end is not None:
            self._log.at_end.set()
        return Batch(records=records, ends={0: self._log.now} if is_at_end else {})

    async def close(self) -> None:
        pass
