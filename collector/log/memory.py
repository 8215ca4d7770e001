"""The log in memory: it ends with the process. For tests, and for a sidecar that may lose its open traces."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from collector.base.clock import Clock
from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.log.commits import Commits, Committed
from collector.log.embedded.polling import (
    FOREVER,
    SLICE_BYTES,
    EmbeddedLog,
    PollingReader,
    SharedLogTime,
    Slice,
)
from collector.log.embedded.prepared_record import TopicPartition, admit
from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.embedded.retention import AppliedRetention, Quotas, Retention, Stored
from collector.log.families import LogFamilies
from collector.log.port import COMPACTED, TOPICS, Commit, New, Position, Record

_OVERHEAD = 200  # bytes that a record takes in memory above its own, roughly


class MemoryLog(EmbeddedLog):
    """See `port.Log`. Quotas and retention are the disk log's.

    `groups` names, by topic, the groups whose commits hold records; without it, they are those that have read or
    committed so far. `waits_for`: see `DiskLog.open`. `keeps_spans`: until their room is needed, as on disk.
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
        keeps_spans: bool = False,
    ) -> None:
        super().__init__(SharedLogTime(clock), partitions=partitions)
        self._families = LogFamilies(telemetry or Telemetry())
        keeps = ReleasedSpans() if keeps_spans else None
        quotas = Quotas(max_size)
        self._retention = Retention(quotas, self.partitions, waits_for or {}, keeps=keeps)
        self._joining = groups is None
        self._commits = Commits(groups or {})
        self._store = MemoryRecords()
        self._open = True
        for topic, limit in quotas.limits().items():
            self._families.limit_bytes.labels(topic).set(limit)

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        return self._write(records, commits)

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> PollingReader:
        if self._joining:
            self._commits.join(group, topic)
        return super().read(group, topic, linger=linger)

    @property
    def end_offsets(self) -> Mapping[TopicPartition, int]:
        return self._store.end_offsets

    def release(self, positions: Iterable[Position]) -> None:
        retention = self._applied()
        for position in positions:
            retention.release(position)

    async def close(self) -> None:
        """Readers end; the records go with the process."""
        self._open = False
        await self._close_readers()

    def committed(self, group: str, topic: str, partition: int) -> Committed:
        return self._commits.of(group, topic, partition)

    def slice(
        self, topic: str, partition: int, since: int, *, end: int = FOREVER, most: int = 256
    ) -> Slice:
        return self._store.slice((topic, partition), since, end=end, most=most)

    def _write(self, records: Sequence[New], commits: Sequence[Commit]) -> list[Position]:
        if not self._open:
            raise LogUnavailable("the log is closed")
        retention = self._applied()
        try:
            prepared = admit(
                records, commits, self.end_offsets, time=self._time.end(), retention=retention
            )
            for record in prepared:
                self._store.append(record)
            for commit in commits:
                if self._joining:
                    self._commits.join(commit.group, commit.topic)
                self._commits.advance(commit)
            retention.trim(FOREVER)
        finally:  # a refused call may have made room
            retention.drops.report(self._families)
        for topic in TOPICS:
            self._families.bytes.labels(topic).set(self._store.used(topic))
        self._wake_readers({record.position.topic for record in prepared})
        return [record.position for record in prepared]

    def _applied(self) -> AppliedRetention:
        return AppliedRetention(self._retention, self._store, self._commits)


class MemoryRecords:
    def __init__(self) -> None:
        self.records: dict[TopicPartition, OrderedDict[int, Record]] = defaultdict(OrderedDict)
        self.end_offsets: dict[TopicPartition, int] = {}
        self._keys: dict[TopicPartition, dict[bytes, int]] = defaultdict(dict)
        self._used: dict[str, int] = defaultdict(int)

    def append(self, record: Record) -> None:
        """Add a record; on a compacted topic it takes the place of the one with its key."""
        (topic, _, offset), topic_partition = record.position, record.position[:2]
        self.end_offsets[topic_partition] = offset + 1
        if topic in COMPACTED:
            old = self._keys[topic_partition].pop(record.key, None)
            if old is not None:
                self.delete(Position(*topic_partition, old))
            if record.is_tombstone:
                return
            self._keys[topic_partition][record.key] = offset
        self._used[topic] += record.size + _OVERHEAD
        self.records[topic_partition][offset] = record

    def need(self, record: Record) -> int:
        replaces = record.is_tombstone or record.key in self._keys[record.position[:2]]
        return 0 if replaces else record.size + _OVERHEAD

    def used(self, topic: str) -> int:
        return self._used[topic]

    def oldest(self, topic: str, partition: int) -> Stored | None:
        return _stored(next(iter(self.records[topic, partition].values()), None))

    def at(self, position: Position) -> Stored | None:
        return _stored(self.records[position[:2]].get(position.offset))

    def delete(self, position: Position) -> None:
        record = self.records[position[:2]].pop(position.offset, None)
        if record is not None:
            self._used[position.topic] -= record.size + _OVERHEAD

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


def _stored(record: Record | None) -> Stored | None:
    return None if record is None else Stored(record.time, record.position, record.count)
