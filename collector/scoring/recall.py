"""Trace records read back from the log for one wave: neighbours to score again, outputs that state let go of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from collector.errors import Undecodable
from collector.log.port import TRACES, Position, Record
from collector.records.sessions import SessionTurn
from collector.records.trace_views import decode_without_spans
from collector.records.traces import TraceRecord
from collector.scoring.turn import cut_output
from evaluators.model import Previous

Get: TypeAlias = Callable[[Position], Awaitable[Record | None]]


class Recall:
    """Reads each record once; what has expired, or is not what it should be, is None."""

    def __init__(self, get: Get, partition: int) -> None:
        self._get = get
        self._partition = partition
        self._found: dict[int, TraceRecord | None] = {}

    async def trace(self, entry: SessionTurn) -> TraceRecord | None:
        """The newest record of a turn."""
        if entry.offset not in self._found:
            self._found[entry.offset] = await self._read(entry)
        return self._found[entry.offset]

    async def history(self, entries: Iterable[SessionTurn]) -> tuple[Previous, ...]:
        """Earlier turns as evaluators see them, the newest last."""
        return tuple([await self._previous(entry) for entry in entries])

    async def _previous(self, entry: SessionTurn) -> Previous:
        output = entry.turn.output
        if not entry.kept:
            record = await self.trace(entry)
            output = None if record is None else cut_output(record.trace.output)
        return Previous(trace_id=entry.turn.trace_id, digest=entry.turn.digest, output=output)

    async def _read(self, entry: SessionTurn) -> TraceRecord | None:
        record = await self._get(Position(TRACES, self._partition, entry.offset))
        if record is None:
            return None
        try:
            found = decode_without_spans(record.value)
        except Undecodable:
            return None
        is_it = isinstance(found, TraceRecord) and found.trace.digest == entry.turn.digest
        return found if is_it and isinstance(found, TraceRecord) else None
