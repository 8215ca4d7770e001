"""The traces that a judge needs beside its subject: those of a closed session, and those before a trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from collector.errors import Undecodable
from collector.judging.turns import SeenTurn
from collector.records.read_back import GetRecord, TraceReader, previous_trace
from collector.records.trace_views import RawTrace, decode_output, decode_raw_trace
from evaluators.model import Previous

SESSION_BYTES = 64 << 20
"""Of one session's traces; its verdict leaves out the oldest that do not fit."""


async def traces_of(
    get: GetRecord, partition: int, offsets: Sequence[int]
) -> tuple[msgspec.Raw, ...]:
    """The newest traces that the log still has, as many as fit, oldest first."""
    reader = TraceReader(get, partition, _decode_raw)
    traces: list[msgspec.Raw] = []
    size = 0
    for offset in reversed(offsets):
        trace = await reader.trace(offset)
        if trace is None:
            continue
        size += len(bytes(trace))
        if size > SESSION_BYTES:
            break
        traces.append(trace)
    return tuple(reversed(traces))


async def previous_of(
    get: GetRecord, partition: int, turns: Iterable[SeenTurn]
) -> tuple[Previous, ...]:
    """Earlier turns as evaluators see them; the output is None when its record has expired."""
    reader = TraceReader(get, partition, _decode_raw)
    history: list[Previous] = []
    for turn in turns:
        trace = await reader.trace(turn.offset)
        output = None if trace is None else _output(trace)
        history.append(previous_trace(turn.trace_id, turn.digest, output))
    return tuple(history)


def _decode_raw(value: bytes) -> msgspec.Raw | None:
    record = decode_raw_trace(value)
    return record.trace if isinstance(record, RawTrace) else None


def _output(trace: msgspec.Raw) -> str | None:
    try:
        return decode_output(trace)
    except Undecodable:
        return None
