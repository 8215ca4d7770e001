r"""A cache of the newest records: a reader that keeps up reads no page of the disk.

write --commit--> tail --> reader, reader, reader      the same objects, no copies
              \\-> disk --> reader that fell behind, or began late
"""

from collections.abc import Iterable

from collector.log.embedded.polling import Slice
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.port import Position, Record

TAIL_BYTES = 8 << 20  # bytes of memory that records take at most for each partition of a topic
RECORD_COST = 500  # bytes that a record takes besides its value and key, rounded up from what tracemalloc says


class Tail:
    """A cache, owned by the event loop: any miss falls back to disk.

    It answers only for a segment of offsets of which it was given every one.
    """

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._segments: dict[TopicPartition, _Segment] = {}

    def add(self, written: Iterable[Record]) -> None:
        for record in written:
            if not record.is_tombstone:
                segment = self._segments.setdefault(record.position[:2], _Segment())
                segment.add(record, self._limit)

    def slice(
        self, topic_partition: TopicPartition, since: int, *, end: int, most: int, end_offset: int
    ) -> Slice | None:
        """Records of the offsets from `since` on; None: the disk must be asked.

        `end_offset` is the offset that the partition's next record will have, as the writer knows it.
        """
        segment = self._segments.get(topic_partition)
        if segment is None or since < segment.first or segment.next != end_offset:
            return None
        records: list[Record] = []
        for offset in range(since, min(end, segment.next)):
            if len(records) >= most:
                return Slice(records, end=False)
            if (record := segment.records.get(offset)) is not None:
                records.append(record)
        return Slice(records, end=True)

    def passed(self, topic_partition: TopicPartition, offset: int) -> None:
        segment = self._segments.get(topic_partition)
        if segment is not None:
            segment.cut(offset)

    def forget(self, positions: Iterable[Position]) -> None:
        for position in positions:
            segment = self._segments.get(position[:2])
            if segment is not None:
                segment.remove(position.offset)


class _Segment:
    """The existing records of one partition, of the offsets from `first` to below `next`."""

    __slots__ = ("first", "next", "records", "size")

    def __init__(self) -> None:
        self.first: int = 0
        self.next: int = 0
        self.size: int = 0
        self.records: dict[int, Record] = {}

    def add(self, record: Record, limit: int) -> None:
        offset = record.position.offset
        if record.first != self.next:
            self.records.clear()
            self.size, self.first = 0, record.first
        self.records[offset] = record
        self.next = offset + 1
        self.size += _cost(record)
        while self.size > limit:
            self.cut(self.first + 1)

    def cut(self, offset: int) -> None:
        while self.first < min(offset, self.next):
            self.remove(self.first)
            self.first += 1

    def remove(self, offset: int) -> None:
        record = self.records.pop(offset, None)
        if record is not None:
            self.size -= _cost(record)


def _cost(record: Record) -> int:
    headers = sum(len(value) for _, value in record.headers)
    return RECORD_COST + len(record.key) + len(record.value) + headers
