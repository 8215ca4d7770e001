"""The log in memory: it ends with the process. For tests, and for a sidecar that may lose its open traces."""

from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from collector.base.clock import Clock
from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.log.commits import Commits, Committed
from collector.log.embedded.polling import (
    FOREVER,
    SLICE_BYTES,
    PollingReader,
    SharedLogTime,
    Slice,
    Unfinished,
    lag_of,
    replay,
    unfinished,
)
from collector.log.embedded.prepared_record import (
    PreparedRecord,
    TopicPartition,
    check_commits,
    prepare,
)
from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.embedded.retention import DroppedRecords, Oldest, Quotas, Retention
from collector.log.families import LogFamilies
from collector.log.port import COMPACTED, SPANS, TOPICS, WINDOWS, Commit, Lag, New, Position, Record

_OVERHEAD = 200  # bytes that a record takes in memory above its own, roughly


class MemoryLog:
    """See `port.Log`. Quotas and retention are the disk log's.

    `groups` names, by topic, the groups whose commits hold records; without it, they are those that have read or
    committed so far. `waits_for`: see `DiskLog.open`. `keeps_spans`: until their room is needed, as on disk.
    """

    counts_offsets = True

    def __init__(
        self,
        *,
        clock: Clock,
        partitions: int = 1,
        max_size: int = 256 << 20,
        telemetry: Telemetry | None = None,
        groups: Mapping[str, frozenset[str]] | None = None,
        waits_for: Mapping[str, frozenset[str]] | None = None,
        keeps_spans: bool = False,
    ) -> None:
        self._partitions = partitions
        self._families = LogFamilies(telemetry or Telemetry())
        self._quotas = Quotas(max_size)
        self._released = ReleasedSpans() if keeps_spans else None
        self._retention = Retention(
            self._quotas, self.partitions, waits_for or {}, keeps=self._released
        )
        self._time = SharedLogTime(clock)
        self._joining = groups is None
        self._commits = Commits(groups or {})
        self._store = MemoryRecords()
        self._readers: set[PollingReader] = set()
        self._open = True
        for topic, limit in self._quotas.limits().items():
            self._families.limit_bytes.labels(topic).set(limit)

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        return self._write(records, commits)

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> PollingReader:
        if any((r.group, r.topic) == (group, topic) for r in self._readers):
            raise ValueError(f"group `{group}` reads `{topic}` already")
        if self._joining:
            self._commits.join(group, topic)
        reader = self._reader(group, topic, linger)
        self._readers.add(reader)
        return reader

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        end = self._store.end_offsets.get((topic, partition), 0)
        return replay(self, topic, partition, since or 0, end)

    async def get(self, position: Position) -> Record | None:
        return self._store.records[position[:2]].get(position.offset)

    def release(self, positions: Iterable[Position]) -> None:
        for position in positions:
            if self._released is not None and position.topic == SPANS:
                self._released.add(position.partition, position.offset)
            elif position.topic not in COMPACTED:
                self._store.delete(position)

    async def end(self, topic: str, partition: int) -> int:
        return self._store.end_offsets.get((topic, partition), 0)

    def partitions(self, topic: str) -> int:
        if topic not in TOPICS:
            raise ValueError(f"there is no topic `{topic}`")
        return 1 if topic == WINDOWS else self._partitions

    async def backlog(self, group: str, topic: str) -> int:
        return (await self.lag(group, topic)).records

    async def lag(self, group: str, topic: str, *, unread: bool = False) -> Lag:
        def first(each: Unfinished) -> tuple[int, float] | None:
            records = self.slice(topic, each.partition, each.low, end=each.end, most=1).records
            return (records[0].first, records[0].time) if records else None

        ends = self._store.end_offsets
        return lag_of(unfinished(self, self._readers, ends, group, topic, unread=unread), first)

    def begin_shutdown(self) -> None:
        """See `port.Log.begin_shutdown`: memory never waits."""

    async def close(self) -> None:
        """Readers end; the records go with the process."""
        self._open = False
        for reader in tuple(self._readers):
            await reader.close()

    def committed(self, group: str, topic: str, partition: int) -> Committed:
        return self._commits.of(group, topic, partition)

    def end_time(self) -> float:
        return self._time.end()

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = 256
    ) -> Slice:
        return self._store.slice((topic, partition), since, end=end, most=most)

    def passed(self, topic: str, partition: int) -> None:
        """See `polling.Source`: memory keeps no copies for readers."""

    def _write(self, records: Sequence[New], commits: Sequence[Commit]) -> list[Position]:
        if not self._open:
            raise LogUnavailable("the log is closed")
        check_commits(commits, self.partitions)
        prepared = prepare(
            records, self._store.end_offsets, partitions=self.partitions, quotas=self._quotas
        )
        self._make_space(prepared, commits)
        time = self._time.begin()
        for record in prepared:
            self._store.append(record, time)
        self._time.finish()
        self._commit(commits)
        self._wake_readers({record.position.topic for record in prepared})
        return [record.position for record in prepared]

    def _reader(self, group: str, topic: str, linger: float) -> PollingReader:
        return PollingReader(self, group, topic, closed=self._readers.discard, linger=linger)

    def _make_space(self, prepared: Sequence[PreparedRecord], commits: Sequence[Commit]) -> None:
        need: dict[str, int] = defaultdict(int)
        for record in prepared:
            if not self._store.replaces(record):
                need[record.position.topic] += record.size + _OVERHEAD
        topics = {commit.topic for commit in commits}
        drops = DroppedRecords()
        try:
            self._retention.admit(self._store, self._commits, need, drops, committing=topics)
        finally:
            drops.report(self._families)

    def _commit(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            if self._joining:
                self._commits.join(commit.group, commit.topic)
            self._commits.advance(commit)
        drops = DroppedRecords()
        self._retention.trim(self._store, self._commits, drops, FOREVER)
        drops.report(self._families)

    def _wake_readers(self, topics: set[str]) -> None:
        for topic in TOPICS:
            self._families.bytes.labels(topic).set(self._store.used(topic))
        for reader in self._readers:
            if reader.topic in topics:
                reader.wake()


class MemoryRecords:
    def __init__(self) -> None:
        self.records: dict[TopicPartition, OrderedDict[int, Record]] = defaultdict(OrderedDict)
        self.end_offsets: dict[TopicPartition, int] = {}
        self._keys: dict[TopicPartition, dict[bytes, int]] = defaultdict(dict)
        self._used: dict[str, int] = defaultdict(int)

    def append(self, prepared: PreparedRecord, time: float) -> None:
        """Add a record; on a compacted topic it takes the place of the one with its key."""
        topic_partition, offset = prepared.position[:2], prepared.position.offset
        self.end_offsets[topic_partition] = offset + 1
        if prepared.position.topic in COMPACTED:
            old = self._keys[topic_partition].pop(prepared.key, None)
            if old is not None:
                self.delete(Position(*topic_partition, old))
            if prepared.value is not None:
                self._keys[topic_partition][prepared.key] = offset
        if prepared.value is None:
            return
        self._used[prepared.position.topic] += prepared.size + _OVERHEAD
        self.records[topic_partition][offset] = prepared.appended(time)

    def replaces(self, prepared: PreparedRecord) -> bool:
        """Whether the topic does not grow by it: a tombstone, or a key that it holds."""
        return prepared.value is None or prepared.key in self._keys[prepared.position[:2]]

    def used(self, topic: str) -> int:
        return self._used[topic]

    def oldest(self, topic: str, partition: int) -> Oldest | None:
        record = next(iter(self.records[topic, partition].values()), None)
        return None if record is None else Oldest(record.position.offset, record.time, record.count)

    def at(self, position: Position) -> Oldest | None:
        record = self.records[position[:2]].get(position.offset)
        return None if record is None else Oldest(position.offset, record.time, record.count)

    def delete(self, position: Position) -> None:
        record = self.records[position[:2]].pop(position.offset, None)
        if record is not None:
            deleted = PreparedRecord(
                record.position, record.key, record.value, record.headers, record.count
            )
            self._used[position.topic] -= deleted.size + _OVERHEAD

    def slice(self, topic_partition: TopicPartition, since: int, *, end: int, most: int) -> Slice:
        stored = self.records[topic_partition]
        records: list[Record] = []
        size = 0
        last = min(end, self.end_offsets.get(topic_partition, 0))
        for offset in range(max(since, next(iter(stored), last)), last):
            if len(records) >= most or size >= SLICE_BYTES:
                return Slice(records, end=False)
            if (record := stored.get(offset)) is not None:
                records.append(record)
                size += len(record.value)
        return Slice(records, end=True)
