"""Trace records read back from the log, by the offset that state keeps of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, TypeVar

from collector.errors import Undecodable
from collector.log.port import TRACES, Position, Record
from evaluators.matching.text import clip
from evaluators.model import Previous

GetRecord: TypeAlias = Callable[[Position], Awaitable[Record | None]]
"""`Log.get`, or a room's way to try it again."""
_T = TypeVar("_T")


class TraceReader(Generic[_T]):
    """Reads records of one partition of `traces`, each at most once.

    Args:
        get: Fetches a record; None when it has expired.
        partition: Of the records.
        decode: Makes a trace of a record's value; None for another kind of record. It may raise `Undecodable`.
    """

    def __init__(
        self, get: GetRecord, partition: int, decode: Callable[[bytes], _T | None]
    ) -> None:
        self._get = get
        self._partition = partition
        self._decode = decode
        self._read: dict[int, _T | None] = {}

    async def trace(self, offset: int) -> _T | None:
        """The trace at this offset; None: it has expired, or the record is not a trace."""
        if offset not in self._read:
            record = await self._get(Position(TRACES, self._partition, offset))
            self._read[offset] = None if record is None else self._decoded(record)
        return self._read[offset]

    def _decoded(self, record: Record) -> _T | None:
        try:
            return self._decode(record.value)
        except Undecodable:
            return None


def previous_trace(trace_id: str, digest: str, output: str | None) -> Previous:
    """An earlier trace as History shows it: of its output the first 8 KiB."""
    return Previous(
        trace_id=trace_id, digest=digest, output=None if output is None else clip(output)
    )
