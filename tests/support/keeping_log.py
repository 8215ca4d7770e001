"""The log of the tests as the disk log is: parts of records can be read, and released spans stay."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.port import SPANS, Position
from tests.support.faulty_log import FaultyLog
from tests.support.ticking import SetClock


class KeepingLog(FaultyLog):
    """A `FaultyLog` with `port.Ranges`."""

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

    async def value_range(self, position: Position, start: int, end: int) -> bytes | None:
        """See `port.Ranges`."""
        record = await self.get(position)
        return None if record is None else record.value[start:end]

    def clear_readers(self) -> None:
        """See `port.Ranges`: nobody else reads this log."""

    def release(self, positions: Iterable[Position]) -> None:
        positions = tuple(positions)
        for each in positions:
            if each.topic == SPANS:
                self._kept.add(each.partition, each.offset)
        self.released |= set(positions)
        super().release(each for each in positions if each.topic != SPANS)
