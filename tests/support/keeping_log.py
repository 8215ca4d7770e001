"""The log of the tests as the disk log is: parts of records can be read, and released spans stay."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.port import SPANS, Position, Range
from tests.support.faulty_log import FaultyLog
from tests.support.ticking import SetClock


class KeepingLog(FaultyLog):
    reads_parts = True

    def __init__(
        self,
        *,
        clock: SetClock,
        partitions: int = 1,
        groups: Mapping[str, frozenset[str]] | None = None,
        max_size: int = 1 << 30,
    ) -> None:
        super().__init__(clock=clock, partitions=partitions, groups=groups, max_size=max_size)
        self._kept = ReleasedSpans()
        self._retention = replace(self._retention, keeps=self._kept)

    async def values_of(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        records = [await self.get(Position(topic, *each[:2])) for each in ranges]
        return [
            None if record is None else record.value[start:end]
            for record, (_, _, start, end) in zip(records, ranges, strict=True)
        ]

    def release(self, positions: Iterable[Position]) -> None:
        positions = tuple(positions)
        for each in positions:
            if each.topic == SPANS:
                self._kept.add(each.partition, each.offset)
        self.released |= set(positions)
        super().release(each for each in positions if each.topic != SPANS)
