"""Traces read back from the log: those of a closed session, and those before a trace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from collector.errors import Undecodable
from collector.judging.turns import SeenTurn
from collector.log.port import TRACES, Position, Record
from collector.records.trace_views import RawTrace, decode_output, decode_raw_trace
from evaluators.matching.text import clip
from evaluators.model import Previous

SESSION_BYTES = 64 << 20
"""Of one session's traces; what is older than fits is left out of its verdict."""
Get: TypeAlias = Callable[[Position], Awaitable[Record | None]]


async def traces_of(get: Get, partition: int, offsets: Sequence[int]) -> tuple[msgspec.Raw, ...]:
    """The newest traces that the log still has, as many as fit, oldest first."""
    traces: list[msgspec.Raw] = []
    size = 0
    for offset in reversed(offsets):
        trace = await _trace(get, partition, offset)
        if trace is None:
            continue
        size += len(bytes(trace))
        if size > SESSION_BYTES:
            break
        traces.append(trace)
    return tuple(reversed(traces))


async def previous_of(get: Get, partition: int, turns: Iterable[SeenTurn]) -> tuple[Previous, ...]:
    """Earlier turns as evaluators see them; the output, cut as a desk cuts it, is None when its record has expired."""
    return tuple([await _previous(get, partition, turn) for turn in turns])


async def _previous(get: Get, partition: int, turn: SeenTurn) -> Previous:
    trace = await _trace(get, partition, turn.offset)
    try:
        output = None if trace is None else decode_output(trace)
    except Undecodable:
        output = None
    return Previous(
        trace_id=turn.trace_id,
        digest=turn.digest,
        output=None if output is None else clip(output),
    )


async def _trace(get: Get, partition: int, offset: int) -> msgspec.Raw | None:
    record = await get(Position(TRACES, partition, offset))
    if record is None:
        return None
    try:
        found = decode_raw_trace(record.value)
    except Undecodable:
        return None
    return found.trace if isinstance(found, RawTrace) else None
