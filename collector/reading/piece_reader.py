"""The raw spans of a job: as they came with it, or read out of the log's map where it names them."""

from collections.abc import Sequence
from pathlib import Path

from collector.base.errors import LogUnavailable
from collector.log.disk.map_reader import MapReader
from collector.log.port import SPANS
from collector.records.span_refs import Piece, SpanRef


class PieceReader:
    def __init__(self, log: str | None) -> None:
        """The map of the log in this folder is opened when the first job names spans; None: there is no such log."""
        self._map = None if log is None else MapReader(Path(log))

    def __call__(self, pieces: Sequence[Piece]) -> tuple[bytes, ...] | None:
        """The bytes of all pieces; None: they cannot all be read here."""
        refs = [
            (each.partition, each.offset, each.start, each.end)
            for each in pieces
            if isinstance(each, SpanRef)
        ]
        if refs and self._map is None:
            return None
        try:
            found = iter(self._map.read(SPANS, refs) if self._map and refs else ())
        except LogUnavailable:
            return None
        read = [next(found) if isinstance(each, SpanRef) else each for each in pieces]
        whole = tuple(each for each in read if each is not None)
        return whole if len(whole) == len(read) else None


def only_bytes(pieces: Sequence[Piece]) -> tuple[bytes, ...] | None:
    """The same in the process that holds the log, which must not open its file twice: what came as bytes."""
    whole = tuple(each for each in pieces if not isinstance(each, SpanRef))
    return whole if len(whole) == len(pieces) else None
