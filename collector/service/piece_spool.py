"""The spans of recordings by trace, whichever file and request each of them stood in."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Self

from collector.otlp.split import Piece
from collector.service.spool import Spool, SpoolPlace

BATCH_BYTES = 8 << 20
"""Of pieces that are read at once; one trace is never parted."""
BATCH_TRACES = 512
"""Traces that are assembled at once: small ones would fill BATCH_BYTES by the ten thousand."""


class PieceSpool:
    """The pieces of every trace, in the order in which they were read; memory holds only where they stand.

    Raises:
        ConfigError: see `Spool`.
    """

    def __init__(self) -> None:
        self._spool = Spool()
        self._places: dict[bytes, array[int]] = {}
        """By trace id, in the order of its first piece: offset and size of each of its pieces."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.__exit__()

    def add(self, piece: Piece) -> None:
        """Keep a piece of a trace."""
        self._places.setdefault(piece.key, array("Q")).extend(self._spool.add(piece.value))

    def of(self, trace_id: bytes) -> Iterator[bytes]:
        """The pieces of a trace."""
        numbers = iter(self._places.get(trace_id, ()))
        for offset, size in zip(numbers, numbers, strict=True):
            yield self._spool.read(SpoolPlace(offset, size))

    def batches(self) -> Iterator[list[Piece]]:
        """All pieces, whole traces together, a few at a time."""
        batch: list[Piece] = []
        size = traces = 0
        for trace_id, places in self._places.items():
            coming = sum(places[1::2])
            if batch and (size + coming > BATCH_BYTES or traces >= BATCH_TRACES):
                yield batch
                batch, size, traces = [], 0, 0
            batch += [Piece(trace_id, value) for value in self.of(trace_id)]
            size += coming
            traces += 1
        if batch:
            yield batch
