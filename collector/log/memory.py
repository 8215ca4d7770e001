"""The log in memory: nothing survives the process. For tests, and for a sidecar that may lose what it holds."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from collector.clock import Clock
from collector.errors import LogUnavailable
from collector.log.commits import Commits, Committed
from collector.log.embedded.log_time import LogTime
from collector.log.embedded.polling import FOREVER, SLICE_BYTES, PollingReader, Slice, replay
from collector.log.embedded.retention import Drops, Retention
from collector.log.embedded.shares import Shares
from collector.log.embedded.staging import Place, Staged, check_commits, stage
from collector.log.port import COMPACTED, TOPICS, WINDOWS, Commit, New, Position, Record
from collector.telemetry import Telemetry

_OVERHEAD = 200
"""Bytes that a record takes in memory beside its own, roughly."""


class MemoryLog:
    """See `port.Log`. Shares and retention are the disk log's.

    `groups` names, by topic, the groups whose commits hold records; without it, they are those that have read or
    committed so far. `waits_for` is the disk log's.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        partitions: int = 1,
        max_size: int = 256 << 20,
        telemetry: Telemetry | None = None,
        groups: Mapping[str, frozenset[str]] | None = None,
        waits_for: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._partitions = partitions
        self._telemetry = Telemetry() if telemetry is None else telemetry
        self._shares = Shares(max_size)
        self._retention = Retention(self._shares, self.partitions, waits_for or {})
        self._time = LogTime(clock)
        self._joining = groups is None
        self._commits = Commits(groups or {})
        self._shelf = _Shelf()
        self._readers: set[PollingReader] = set()
        self._open = True
        for topic, limit in self._shares.limits().items():
            self._telemetry.log_limit_bytes.labels(topic).set(limit)

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        """See `port.Log.write`; atomic."""
        if not self._open:
            raise LogUnavailable("the log is closed")
        check_commits(commits, self.partitions)
        staged = stage(records, self._shelf.nexts, partitions=self.partitions, shares=self._shares)
        self._make_room(staged, commits)
        time = self._time.begin()
        for record in staged:
            self._shelf.append(record, time)
        self._time.settle()
        self._commit(commits)
        self._settle({record.position.topic for record in staged})
        return [record.position for record in staged]

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> PollingReader:
        """See `port.Log.read`.

        Raises:
            ValueError: the group reads the topic already.
        """
        if any((r.group, r.topic) == (group, topic) for r in self._readers):
            raise ValueError(f"group `{group}` reads `{topic}` already")
        if self._joining:
            self._commits.join(group, topic)
        reader = PollingReader(self, group, topic, closed=self._readers.discard, linger=linger)
        self._readers.add(reader)
        return reader

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        """See `port.Log.replay`."""
        end = self._shelf.nexts.get((topic, partition), 0)
        return replay(self, topic, partition, since or 0, end)

    async def get(self, position: Position) -> Record | None:
        """See `port.Log.get`."""
        return self._shelf.records[position[:2]].get(position.offset)

    def release(self, positions: Iterable[Position]) -> None:
        """See `port.Log.release`."""
        for position in positions:
            if position.topic not in COMPACTED:
                self._shelf.delete(position)

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        if topic not in TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        return 1 if topic == WINDOWS else self._partitions

    def begin_shutdown(self) -> None:
        """See `port.Log.begin_shutdown`: memory never waits."""

    async def close(self) -> None:
        """Readers end; the records go with the process."""
        self._open = False
        for reader in tuple(self._readers):
            await reader.close()

    def committed(self, group: str, topic: str, partition: int) -> Committed:
        """Where the group goes on."""
        return self._commits.of(group, topic, partition)

    def end_time(self) -> float:
        """See `polling.Source`."""
        return self._time.end()

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = 256
    ) -> Slice:
        """See `polling.Source`."""
        return self._shelf.slice((topic, partition), since, end=end, most=most)

    def passed(self, topic: str, partition: int) -> None:
        """See `polling.Source`: nothing is held for readers alone."""

    def _make_room(self, staged: Sequence[Staged], commits: Sequence[Commit]) -> None:
        need: dict[str, int] = defaultdict(int)
        for record in staged:
            if not self._shelf.replaces(record):
                need[record.position.topic] += record.size + _OVERHEAD
        topics = {commit.topic for commit in commits}
        self._retention.admit(self._shelf, self._commits, need, committing=topics)
        drops = Drops()
        self._retention.make_room(self._shelf, self._commits, need, drops)
        drops.report(self._telemetry)

    def _commit(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            if self._joining:
                self._commits.join(commit.group, commit.topic)
            self._commits.advance(commit)
        drops = Drops()
        self._retention.trim(self._shelf, self._commits, drops, FOREVER)
        drops.report(self._telemetry)

    def _settle(self, topics: set[str]) -> None:
        for topic in TOPICS:
            self._telemetry.log_bytes.labels(topic).set(self._shelf.used(topic))
        for reader in self._readers:
            if reader.topic in topics:
                reader.wake()


class _Shelf:
    """The records by place; see `retention.Shelf`."""

    def __init__(self) -> None:
        self.records: dict[Place, OrderedDict[int, Record]] = defaultdict(OrderedDict)
        self.nexts: dict[Place, int] = {}
        self._keys: dict[Place, dict[bytes, int]] = defaultdict(dict)
        self._used: dict[str, int] = defaultdict(int)

    def append(self, staged: Staged, time: float) -> None:
        """Add a record; on a compacted topic it takes the place of the one with its key."""
        place, offset = staged.position[:2], staged.position.offset
        self.nexts[place] = offset + 1
        if staged.position.topic in COMPACTED:
            old = self._keys[place].pop(staged.key, None)
            if old is not None:
                self.delete(Position(*place, old))
            if staged.value is not None:
                self._keys[place][staged.key] = offset
        if staged.value is None:
            return
        self._used[staged.position.topic] += staged.size + _OVERHEAD
        self.records[place][offset] = Record(
            position=staged.position,
            key=staged.key,
            value=staged.value,
            time=time,
            headers=staged.headers,
        )

    def replaces(self, staged: Staged) -> bool:
        """Does it take another one's place (or none)?"""
        return staged.value is None or staged.key in self._keys[staged.position[:2]]

    def used(self, topic: str) -> int:
        """Bytes held."""
        return self._used[topic]

    def oldest(self, topic: str, partition: int) -> tuple[int, float] | None:
        """Offset and time of the oldest record."""
        record = next(iter(self.records[topic, partition].values()), None)
        return None if record is None else (record.position.offset, record.time)

    def delete(self, position: Position) -> None:
        """Remove a record; one that is gone is fine."""
        record = self.records[position[:2]].pop(position.offset, None)
        if record is not None:
            gone = Staged(record.position, record.key, record.value, record.headers)
            self._used[position.topic] -= gone.size + _OVERHEAD

    def slice(self, place: Place, since: int, *, end: int, most: int) -> Slice:
        """See `polling.Source`."""
        held = self.records[place]
        found: list[Record] = []
        size = 0
        last = min(end, self.nexts.get(place, 0))
        for offset in range(max(since, next(iter(held), last)), last):
            if len(found) >= most or size >= SLICE_BYTES:
                return Slice(found, end=False)
            if (record := held.get(offset)) is not None:
                found.append(record)
                size += len(record.value)
        return Slice(found, end=True)
