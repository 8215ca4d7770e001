"""A list-backed Log for the tests of sinks: partitions, commits with marks, compaction, failures on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from collector.errors import LogUnavailable
from collector.log.port import COMPACTED, Assigned, Batch, Commit, New, Position, Record


@dataclass
class ListLog:
    """What was written survives every reader, as a disk does; `now` is the log's clock."""

    count: int = 1
    """Partitions of `signals` and `traces`; `windows` has one."""
    now: float = 1_700_000_000.0
    fails: bool = False
    """While True nothing can be written."""
    tears: bool = False
    """While True a write ends between its records and its commits, as on a log without transactions."""
    records: dict[tuple[str, int], list[Record]] = field(
        default_factory=dict[tuple[str, int], list[Record]]
    )
    tombstones: set[Position] = field(default_factory=set[Position])
    commits: dict[tuple[str, str, int], Commit] = field(
        default_factory=dict[tuple[str, str, int], Commit]
    )
    starts: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """Below it records have expired."""
    writes: int = 0

    def partitions(self, topic: str) -> int:
        return 1 if topic in COMPACTED else self.count

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        if self.fails:
            raise LogUnavailable("told to fail")
        self.writes += 1
        positions: list[Position] = []
        for new in records:
            positions.append(self._append(new, positions))
        if self.tears:
            raise LogUnavailable("told to tear")
        for commit in commits:
            self.commits[commit.group, commit.topic, commit.partition] = commit
        return positions

    def _append(self, new: New, before: Sequence[Position]) -> Position:
        partition = new.partition
        if partition is None:
            partition = sum(new.key) % self.partitions(new.topic)
        line = self.records.setdefault((new.topic, partition), [])
        position = Position(new.topic, partition, len(line))
        value = new.value(before) if callable(new.value) else new.value
        if value is None:
            self.tombstones.add(position)
        line.append(
            Record(
                position=position,
                key=new.key,
                value=value or b"",
                time=self.now,
                headers=new.headers,
            )
        )
        return position

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> ListReader:
        return ListReader(log=self, group=group, topic=topic)

    async def replay(
        self, topic: str, partition: int, since: int | None = None
    ) -> AsyncIterator[Record]:
        newest = dict[bytes, Record]()
        for record in self.records.get((topic, partition), []):
            key = record.key if topic in COMPACTED else str(record.position.offset).encode()
            newest[key] = record
        for record in newest.values():
            is_gone = record.position in self.tombstones
            if not is_gone and record.position.offset >= (since or 0):
                yield record

    async def get(self, position: Position) -> Record | None:
        return self.records[position.topic, position.partition][position.offset]

    def release(self, positions: Iterable[Position]) -> None:
        pass

    async def backlog(self, group: str, topic: str) -> int:
        total = 0
        for partition in range(self.partitions(topic)):
            commit = self.commits.get((group, topic, partition))
            end = len(self.records.get((topic, partition), []))
            total += end - (commit.offset if commit else 0)
        return total

    def begin_shutdown(self) -> None: ...

    async def close(self) -> None:
        pass


@dataclass
class ListReader:
    log: ListLog
    group: str
    topic: str
    at: dict[int, int] = field(default_factory=dict[int, int])
    closed: bool = False

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        if self.log.fails:
            raise LogUnavailable("told to fail")
        if not self.at:
            return self._assign()
        records: list[Record] = []
        lost: dict[int, int] = {}
        for partition in self.at:
            start = self.log.starts.get((self.topic, partition), 0)
            if self.at[partition] < start:
                lost[partition] = start - self.at[partition]
                self.at[partition] = start
            line = self.log.records.get((self.topic, partition), [])
            found = line[self.at[partition] :][: max_records - len(records)]
            self.at[partition] += len(found)
            records += found
        if not records:
            await asyncio.sleep(min(timeout, 0.001))
        ends = {
            partition: self.log.now
            for partition, offset in self.at.items()
            if offset == len(self.log.records.get((self.topic, partition), []))
        }
        return Batch(records=records, ends=ends, lost=lost)

    def _assign(self) -> Batch:
        assigned: list[Assigned] = []
        for partition in range(self.log.partitions(self.topic)):
            commit = self.log.commits.get((self.group, self.topic, partition))
            self.at[partition] = commit.offset if commit else 0
            assigned.append(
                Assigned(
                    partition=partition,
                    offset=commit.offset if commit else None,
                    metadata=commit.metadata if commit else None,
                )
            )
        return Batch(assigned=tuple(assigned))

    async def close(self) -> None:
        self.closed = True
