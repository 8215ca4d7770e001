"""What the receiver knows of the records of `spans` that it has written, handed to assembly in the same process.

    receiver: write -> positions -> put(position, held)    assembly: record -> take(its position), else scan it

It says nothing that the log has not made durable, and nothing that the record's bytes do not say: whatever is lost of
it, after a start all of it, costs a scan and nothing else.
"""

from collections import OrderedDict

from collector.log.port import Position
from collector.otlp.scan import Scan

MOST_BYTES = 8 << 20
"""Of memory; about 40,000 spans. Assembly is seconds behind by then, and scans what is refused here."""
TRACE_COST, SPAN_COST = 500, 200
"""Bytes that a trace and a span take, rounded up from what tracemalloc says; resources count as they are."""


class ScanCache:
    """Scans by position, for one reader that takes each partition's records in order. Owned by one event loop.

    `most`: bytes of memory; above it nothing more is kept.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._waiting: OrderedDict[Position, tuple[Scan, int]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def size(self) -> int:
        """Bytes of memory that it takes."""
        return self._size

    def put(self, position: Position, held: Scan) -> None:
        """Keep what the record at `position` holds, if there is room; it has been written."""
        size = _size(held)
        if self._size + size <= self._most and position not in self._waiting:
            self._waiting[position] = (held, size)
            self._size += size

    def take(self, position: Position) -> Scan | None:
        """What the record at `position` holds, if that is known; it and what was put before it is forgotten.

        The reader has passed the earlier records of the partition, whether it took what was known of them or not.
        """
        found = None
        while self._waiting:
            first = next(iter(self._waiting))
            if first[:2] != position[:2] or first.offset > position.offset:
                break
            held, size = self._waiting.pop(first)
            self._size -= size
            if first.offset == position.offset:
                found = held
        return found


def _size(held: Scan) -> int:
    spans = sum(map(len, held.traces.values()))
    resources = sum(len(part) for parts in held.resources.values() for part in parts)
    return TRACE_COST * len(held.traces) + SPAN_COST * spans + resources
