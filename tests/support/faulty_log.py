"""The log of the tests: a `MemoryLog` that fails, crashes and loses records on demand, and remembers what was written.

It keeps the `LogContract`, as every adapter does. Its clock is the test's,
and a poll waits for some turns of the event loop instead of seconds.

A crash is an exception, `Crash`, from the call that meets it and from every later call, until `restart`: the records
and the commits survive, the readers do not.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

import msgspec

from collector.base.errors import LogUnavailable, RecordTooLarge
from collector.base.telemetry import Telemetry
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.memory import MemoryLog, MemoryRecords
from collector.log.port import Commit, Headers, New, Position, Record
from tests.support.clocks import SetClock
from tests.support.faulty_reader import FaultyReader

START = 1_700_000_000.0
"""Where the clock stands when the test gives none, in unix seconds."""


class Crash(Exception):
    """The process is gone."""


class FaultyLog(MemoryLog):
    """`atomic` False: records, then commits, one by one, as on Kafka; a crash or `tears` may end a write in between.

    Without `groups`, the groups that read or commit hold the records.
    """

    def __init__(
        self,
        *,
        clock: SetClock | None = None,
        partitions: int = 1,
        max_size: int = 1 << 30,
        telemetry: Telemetry | None = None,
        groups: Mapping[str, frozenset[str]] | None = None,
        waits_for: Mapping[str, frozenset[str]] | None = None,
        keeps_spans: bool = False,
        atomic: bool = True,
    ) -> None:
        self.clock = SetClock(START) if clock is None else clock
        super().__init__(
            clock=self.clock,
            partitions=partitions,
            max_size=max_size,
            telemetry=telemetry,
            groups=groups,
            waits_for=waits_for,
            keeps_spans=keeps_spans,
        )
        self.written: list[Record] = []
        """Every record that was ever appended, in order; a tombstone has an empty value."""
        self._store = _RememberingRecords(self.written)
        self.atomic = atomic
        self.counts_offsets = atomic

        self.calls: list[tuple[Sequence[New], Sequence[Commit]]] = []
        """Every write that was not refused."""
        self.arrivals: list[float] = []
        """When `write` was called, by the event loop's clock."""
        self.commits: list[Commit] = []
        """Every commit that was stored, in order."""
        self.released: set[Position] = set()
        self.oldest: dict[TopicPartition, int] = {}
        """The offsets below which records have expired."""
        self.replayed: list[int] = []
        """The partitions that were replayed, in order."""
        self.readers: list[FaultyReader] = []
        """Every reader since the last start."""

        self.fails: Exception | None = None
        """While set, writes and polls raise it."""
        self.write_failures: list[Exception] = []
        """Raised by the next writes, one each, before anything is written."""
        self.poll_failures: list[Exception] = []
        self.get_failures: list[Exception] = []
        self.largest: dict[str, int] = {}
        """By topic, bytes of the largest value; larger ones raise RecordTooLarge."""
        self.tears = False
        """While True, writes end between their records and their commits."""
        self.gate: asyncio.Event | None = None
        """Writers wait until it is set."""
        self.waiting = 0
        """How many of them wait."""
        self.at_end: asyncio.Event | None = None
        """Set when a reader stands at the end of all its partitions."""
        self.crash_at: int | None = None
        """The step at which the process crashes. A call of the log is a step; so is, unless atomic, each record and
        each commit, and the end of a write."""
        self.crash_after: int | None = None
        """How many more records and commits are stored before the process crashes."""
        self.steps = 0
        self._crashed = False

    # --- the test's own --------------------------------------------------------------------------------------------

    def append(
        self,
        topic: str,
        value: bytes,
        *,
        key: bytes = b"",
        partition: int = 0,
        headers: Headers = (),
    ) -> Position:
        """A record of another process: no fault meets it."""
        new = New(topic=topic, key=key, value=value, partition=partition, headers=headers)
        (position,) = self._write([new], ())
        return position

    def skip_to(self, offset: int, topic: str, partition: int = 0) -> None:
        """Leave a gap: the partition's next record stands at `offset`, unless the partition is longer already."""
        self._store.end_offsets[topic, partition] = max(self.end_offset(topic, partition), offset)

    def end_offset(self, topic: str, partition: int = 0) -> int:
        """The offset that the partition's next record will have."""
        return self._store.end_offsets.get((topic, partition), 0)

    def history(self, topic: str) -> list[Record]:
        """Every record that was ever appended to the topic, in order."""
        return [each for each in self.written if each.position.topic == topic]

    def stored(self, topic: str) -> list[Record]:
        """The records that the topic holds now, partition by partition."""
        return [
            record
            for partition in range(self.partitions(topic))
            for record in self._store.records[topic, partition].values()
        ]

    def expire(self, position: Position) -> None:
        """Lose the record."""
        self._store.delete(position)

    def expire_below(self, offset: int, topic: str, partition: int = 0) -> None:
        """Lose the partition's records below `offset`; its readers report those that they have not read."""
        for each in [each for each in self._store.records[topic, partition] if each < offset]:
            self._store.delete(Position(topic, partition, each))
        self.oldest[topic, partition] = offset

    def forget_commits(self) -> None:
        """Lose every commit: the next readers begin at the oldest record."""
        self._commits = type(self._commits)({})
        self.commits.clear()

    def restart(self, crash_at: int | None = None) -> None:
        """The process starts again, without readers and faults; it crashes at step `crash_at`."""
        self.fails, self.tears = None, False
        for failures in (self.write_failures, self.poll_failures, self.get_failures):
            failures.clear()
        self._readers.clear()
        self.readers.clear()
        self.replayed.clear()
        self.steps, self.crash_at, self.crash_after = 0, crash_at, None
        self._crashed = False

    def other_process(self) -> FaultyLog:
        """The same records and commits, as another process sees them."""
        other = copy.copy(self)
        other._readers, other.readers, other.replayed = set(), [], []
        return other

    def step(self) -> None:
        """Raises Crash when the process crashes here, or has crashed."""
        self.steps += 1
        self._crashed |= self.crash_at is not None and self.steps >= self.crash_at
        if self._crashed:
            raise Crash

    def fail(self, failures: list[Exception]) -> None:
        """Raises the next failure, if there is one."""
        if failures:
            raise failures.pop(0)
        if self.fails is not None:
            raise self.fails

    # --- the port --------------------------------------------------------------------------------------------------

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        self.arrivals.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        if self.gate is not None:
            self.waiting += 1
            try:
                await self.gate.wait()
            finally:
                self.waiting -= 1
        self.step()
        self._refuse(records)
        self.calls.append((records, commits))
        store = self._store_at_once if self.atomic and not self.tears else self._store_one_by_one
        positions = store(records, commits)
        await asyncio.sleep(0)
        self.step()
        return positions

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        self.step()
        self.replayed.append(partition)
        return super().replay(topic, partition, since)

    async def get(self, position: Position) -> Record | None:
        await asyncio.sleep(0)
        self.step()
        if self.get_failures:
            raise self.get_failures.pop(0)
        return await super().get(position)

    def release(self, positions: Iterable[Position]) -> None:
        positions = tuple(positions)
        self.released |= set(positions)
        super().release(positions)

    # --- inside ----------------------------------------------------------------------------------------------------

    def _refuse(self, records: Sequence[New]) -> None:
        self.fail(self.write_failures)
        for each in records:
            largest = self.largest.get(each.topic)
            if largest is not None and isinstance(each.value, bytes) and len(each.value) > largest:
                raise RecordTooLarge(f"{len(each.value)} bytes on `{each.topic}`")

    def _store_at_once(
        self, records: Sequence[New], commits: Sequence[Commit]
    ) -> Sequence[Position]:
        self._spend(len(records) + len(commits))
        positions = self._write(records, commits)
        self.commits += commits
        return positions

    def _store_one_by_one(
        self, records: Sequence[New], commits: Sequence[Commit]
    ) -> Sequence[Position]:
        positions: list[Position] = []
        for new in records:
            value = new.value(positions[-1]) if callable(new.value) else new.value
            self._spend(1)
            positions += self._write([msgspec.structs.replace(new, value=value)], ())
            self.step()
        if self.tears:
            raise LogUnavailable("the write was torn")
        for commit in commits:
            self._spend(1)
            self._write((), [commit])
            self.commits.append(commit)
            self.step()
        return positions

    def _spend(self, count: int) -> None:
        """Crash instead of storing `count` more records and commits than are left."""
        if self.crash_after is None:
            return
        self.crash_after -= count
        if self.crash_after < 0:
            self._crashed = True
            raise Crash

    def _reader(self, group: str, topic: str, linger: float) -> FaultyReader:
        del linger  # it is a time of the clock
        reader = FaultyReader(self, group, topic)
        self.readers.append(reader)
        return reader


class _RememberingRecords(MemoryRecords):
    def __init__(self, written: list[Record]) -> None:
        super().__init__()
        self._written = written

    def append(self, record: Record) -> None:
        super().append(record)
        self._written.append(record)


def unavailable(times: int) -> list[Exception]:
    """Failures for `write_failures`, `poll_failures` or `get_failures`."""
    return [LogUnavailable("not now") for _ in range(times)]
