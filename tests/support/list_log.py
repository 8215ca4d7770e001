"""A log made of lists: several partitions, a clock that the test owns, failures on demand, and crashes.

`Disk` is everything that survives a crash. A `ListLog` is one life over it: when the step numbered `crash_at` comes, it
and every later call raise `Crash`. A write is several steps unless `atomic`: one per record, one per commit.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from collector.errors import LogUnavailable, RecordTooLarge
from collector.log.port import Assigned, Batch, Commit, New, Position, Record


class Crash(Exception):
    """The process is gone."""


@dataclass(slots=True, kw_only=True)
class Disk:
    """What survives. A partition is a dict by offset; expired and released records leave it."""

    partitions: int = 1
    records: dict[tuple[str, int], dict[int, Record]] = field(
        default_factory=dict[tuple[str, int], dict[int, Record]]
    )
    ends: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    commits: dict[tuple[str, str, int], Commit] = field(
        default_factory=dict[tuple[str, str, int], Commit]
    )
    released: set[Position] = field(default_factory=set[Position])

    def of(self, topic: str, partition: int) -> list[Record]:
        return list(self.records.get((topic, partition), {}).values())

    def all(self, topic: str) -> list[Record]:
        return [each for partition in range(self.partitions) for each in self.of(topic, partition)]

    def append(self, topic: str, partition: int, key: bytes, value: bytes, time: float) -> Position:
        offset = self.ends.get((topic, partition), 0)
        self.ends[topic, partition] = offset + 1
        position = Position(topic, partition, offset)
        held = self.records.setdefault((topic, partition), {})
        held[offset] = Record(position=position, key=key, value=value, time=time)
        return position

    def trim(self) -> None:
        """Lose all that the log may lose: what was released, and what every commit has passed."""
        for position in self.released:
            self.records.get((position.topic, position.partition), {}).pop(position.offset, None)
        for commit in self.commits.values():
            held = self.records.get((commit.topic, commit.partition), {})
            for offset in [each for each in held if each < commit.offset]:
                del held[offset]
            marks = self.records.get(("closings", commit.partition), {})
            for offset in [each for each in marks if each < (commit.metadata or 0)]:
                del marks[offset]


@dataclass(slots=True, kw_only=True)
class ListLog:
    """One life of the log."""

    disk: Disk
    clock: Callable[[], float]
    atomic: bool = True
    crash_at: int | None = None
    failures: list[Exception] = field(default_factory=list[Exception])
    """Raised by the next writes, one each, before anything is written."""
    max_record: int = 1 << 30
    steps: int = 0
    readers: list[ListReader] = field(default_factory=list["ListReader"])
    commits: list[Commit] = field(default_factory=list[Commit])
    """Every commit of this life, in order."""
    replays: list[int] = field(default_factory=list[int])
    """Partitions that were replayed."""

    def step(self) -> None:
        self.steps += 1
        if self.crash_at is not None and self.steps >= self.crash_at:
            raise Crash

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        await asyncio.sleep(0)
        self.step()
        if self.failures:
            raise self.failures.pop(0)
        if any(
            isinstance(new.value, bytes) and len(new.value) > self.max_record for new in records
        ):
            raise RecordTooLarge("above the list's limit")
        positions: list[Position] = []
        for new in records:
            value = new.value(tuple(positions)) if callable(new.value) else new.value
            assert value is not None
            partition = new.partition
            if partition is None:
                partition = zlib.crc32(new.key) % self.disk.partitions
            positions.append(self.disk.append(new.topic, partition, new.key, value, self.clock()))
            if not self.atomic:
                self.step()
        for commit in commits:
            self.disk.commits[commit.group, commit.topic, commit.partition] = commit
            self.commits.append(commit)
            if not self.atomic:
                self.step()
        await asyncio.sleep(0)
        self.step()
        return positions

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> ListReader:
        reader = ListReader(log=self, group=group, topic=topic)
        self.readers.append(reader)
        return reader

    async def replay(
        self, topic: str, partition: int, since: int | None = None
    ) -> AsyncIterator[Record]:
        self.step()
        self.replays.append(partition)
        for record in self.disk.of(topic, partition):
            if record.position.offset >= (since or 0):
                yield record

    async def get(self, position: Position) -> Record | None:
        await asyncio.sleep(0)
        self.step()
        held = self.disk.records.get((position.topic, position.partition), {})
        return held.get(position.offset)

    def release(self, positions: Iterable[Position]) -> None:
        self.disk.released |= set(positions)

    def partitions(self, topic: str) -> int:
        del topic
        return self.disk.partitions

    def begin_shutdown(self) -> None: ...

    async def close(self) -> None:
        for reader in self.readers:
            await reader.close()


@dataclass(slots=True, kw_only=True)
class ListReader:
    """Owns every partition, unless the test takes some away with `revoke` and `assign`."""

    log: ListLog
    group: str
    topic: str
    lag: int = 0
    """Hide this many of the newest records of each partition."""
    next_offsets: dict[int, int] = field(default_factory=dict[int, int])
    revoked: list[int] = field(default_factory=list[int])
    coming: list[int] | None = None
    polls: int = 0

    def revoke(self, partition: int) -> None:
        self.revoked.append(partition)
        self.next_offsets.pop(partition)

    def assign(self, partition: int) -> None:
        self.coming = [*(self.coming or ()), partition]

    async def poll(self, *, max_records: int = 256, timeout: float = 1.0) -> Batch:
        del timeout
        await asyncio.sleep(0)
        self.polls += 1
        self.log.step()
        if self.coming is None:
            self.coming = list(range(self.log.disk.partitions))
        revoked, self.revoked = tuple(self.revoked), []
        coming, self.coming = self.coming, []
        assigned = tuple(self._assigned(partition) for partition in coming)
        if revoked or assigned:
            return Batch(revoked=revoked, assigned=assigned)
        return self._records(max_records)

    def _assigned(self, partition: int) -> Assigned:
        commit = self.log.disk.commits.get((self.group, self.topic, partition))
        self.next_offsets[partition] = commit.offset if commit else 0
        return Assigned(
            partition=partition,
            offset=commit.offset if commit else None,
            metadata=commit.metadata if commit else None,
        )

    def _records(self, max_records: int) -> Batch:
        records: list[Record] = []
        ends: dict[int, float] = {}
        for partition, start in self.next_offsets.items():
            held = self.log.disk.of(self.topic, partition)
            waiting = [each for each in held if each.position.offset >= start]
            visible = waiting[: max(0, len(waiting) - self.lag)]
            taken = visible[: max_records - len(records)]
            records += taken
            if taken:
                self.next_offsets[partition] = taken[-1].position.offset + 1
            if len(taken) == len(waiting):
                ends[partition] = self.log.clock()
        return Batch(records=records, ends=ends)

    async def close(self) -> None:
        self.next_offsets.clear()


def unavailable(times: int) -> list[Exception]:
    return [LogUnavailable("not now") for _ in range(times)]
