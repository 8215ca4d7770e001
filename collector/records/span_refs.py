"""The places of raw spans in topic `spans`, instead of the spans: in the memory of assembly, in jobs, in trace records.

A trace record of a log that reads parts of records (`reads_parts`) names its spans: they are written once, and read
again only by who needs them. Everywhere else, and where a piece was cut, the bytes themselves are there.
"""

from collections.abc import Sequence

import msgspec

from collector.log.port import SPANS, Log, Position


class SpanRef(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The bytes from `start` to below `end` of a record's value: a request of one trace."""

    partition: int
    offset: int
    start: int
    end: int

    @property
    def position(self) -> Position:
        return Position(SPANS, self.partition, self.offset)


Piece = bytes | SpanRef
"""Raw spans of one trace, each an ExportTraceServiceRequest, or where they are."""


def size_of(piece: Piece) -> int:
    return piece.end - piece.start if isinstance(piece, SpanRef) else len(piece)


async def pieces_read(log: Log, pieces: Sequence[Piece]) -> list[bytes | None]:
    """The bytes of each piece; None where the log does not have them any more.

    Raises LogUnavailable: the log cannot be read now.
    """
    refs = [each for each in pieces if isinstance(each, SpanRef)]
    ranges = [(each.partition, each.offset, each.start, each.end) for each in refs]
    read = iter(await log.values_of(SPANS, ranges) if ranges else ())
    return [next(read) if isinstance(each, SpanRef) else each for each in pieces]


async def whole_read(log: Log, pieces: Sequence[Piece]) -> tuple[bytes, ...]:
    """The bytes of all pieces; none where any of them has expired: a part of a trace is not the trace.

    Raises LogUnavailable: the log cannot be read now.
    """
    read = await pieces_read(log, pieces)
    return tuple(each for each in read if each is not None) if None not in read else ()
