r"""The newest records of a log in this process, as they were written: a reader that keeps up reads no page of the disk.

write --commit--> tail --> reader, reader, reader      the same objects, nothing copied
              \\-> disk --> reader that fell behind, or began late
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collector.log.embedded.polling import Slice
from collector.log.embedded.staging import Place, Staged
from collector.log.port import Position, Record

TAIL_BYTES = 8 << 20
"""Values held at most, for each place."""


class Tail:
    """Holds records of the places that somebody reads. Owned by the event loop; what it says is never more than hints.

    It answers only for a stretch of offsets of which it saw every one.
    """

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._stretches: dict[Place, _Stretch] = {}

    def add(self, written: Iterable[Staged], time: float) -> None:
        """Take in what one transaction appended."""
        for staged in written:
            if staged.value is None:
                continue
            stretch = self._stretches.setdefault(staged.position[:2], _Stretch())
            record = Record(
                position=staged.position,
                key=staged.key,
                value=staged.value,
                time=time,
                headers=staged.headers,
            )
            stretch.add(record, self._limit)

    def slice(self, place: Place, since: int, *, end: int, most: int, head: int) -> Slice | None:
        """Records of the offsets from `since` on; None: the disk must be asked.

        `head` is the offset that the place's next record will have, as the writer knows it.
        """
        stretch = self._stretches.get(place)
        if stretch is None or since < stretch.first or stretch.next != head:
            return None
        found: list[Record] = []
        for offset in range(since, min(end, stretch.next)):
            if len(found) >= most:
                return Slice(found, end=False)
            if (record := stretch.records.get(offset)) is not None:
                found.append(record)
        return Slice(found, end=True)

    def passed(self, place: Place, offset: int) -> None:
        """Every reader has had what stands below `offset`."""
        stretch = self._stretches.get(place)
        if stretch is not None:
            stretch.cut(offset)

    def forget(self, positions: Iterable[Position]) -> None:
        """These records are gone from the log."""
        for position in positions:
            stretch = self._stretches.get(position[:2])
            if stretch is not None:
                stretch.take_out(position.offset)

    def forget_topics(self, topics: Sequence[str] | frozenset[str]) -> None:
        """Records of these topics were dropped for want of room: the disk knows which."""
        for place in [each for each in self._stretches if each[0] in topics]:
            del self._stretches[place]


class _Stretch:
    """Every record of one place that still exists, of the offsets from `first` to below `next`."""

    __slots__ = ("first", "next", "records", "size")

    def __init__(self) -> None:
        self.first: int = 0
        self.next: int = 0
        self.size: int = 0
        self.records: dict[int, Record] = {}

    def add(self, record: Record, limit: int) -> None:
        offset = record.position.offset
        if offset != self.next:
            self.records.clear()
            self.size, self.first = 0, offset
        self.records[offset] = record
        self.next = offset + 1
        self.size += len(record.value)
        while self.size > limit:
            self.cut(self.first + 1)

    def cut(self, offset: int) -> None:
        while self.first < min(offset, self.next):
            self.take_out(self.first)
            self.first += 1

    def take_out(self, offset: int) -> None:
        record = self.records.pop(offset, None)
        if record is not None:
            self.size -= len(record.value)
