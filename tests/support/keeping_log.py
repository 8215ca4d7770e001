"""The log of the tests as the disk log is: parts of records can be read, and released spans stay."""

from collections.abc import Sequence
from typing import Any

from collector.log.port import Position, Range
from tests.support.faulty_log import FaultyLog


class KeepingLog(FaultyLog):
    reads_parts = True

    def __init__(self, **settings: Any) -> None:
        """As a `FaultyLog`."""
        super().__init__(**settings, keeps_spans=True)

    async def values_of(self, topic: str, ranges: Sequence[Range]) -> list[bytes | None]:
        records = [await self.get(Position(topic, *each[:2])) for each in ranges]
        return [
            None if record is None else record.value[start:end]
            for record, (_, _, start, end) in zip(records, ranges, strict=True)
        ]
