"""Late spans: the record of a closed trace and the pieces that came after it become one trace again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from collector.assembly.open_trace import Closing
from collector.assembly.scan import only, span_ids
from collector.config.tree import TraceWindow
from collector.records.traces import TraceRecord
from evaluators.model import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The pieces of the old record, then the new spans of the late pieces."""

    pieces: tuple[bytes, ...]
    seen: float
    """Log time at which the newest new span arrived."""
    new: int
    """Late spans that the trace did not have."""
    duplicates: int
    """Late spans that it had."""
    fits: bool
    """Whether the whole is within max_spans and max_bytes."""


def merge(old: TraceRecord, closing: Closing, windows: TraceWindow) -> Merged:
    """Append the late pieces of `closing` to the pieces of the record. `new` is 0 if there is nothing to revise.

    Raises:
        Undecodable: a piece of the old record is not an ExportTraceServiceRequest.
    """
    ids = span_ids(old.spans)
    pieces = list(old.spans)
    seen = old.seen
    before = len(ids)
    for piece, time in zip(closing.pieces, closing.times, strict=True):
        late_ids = span_ids([piece])
        new = late_ids - ids
        if new:
            pieces.append(piece if new == late_ids else only(piece, closing.trace_id, new))
            seen = time
            ids |= new
    new_spans = len(ids) - before
    return Merged(
        pieces=tuple(pieces),
        seen=seen,
        new=new_spans,
        duplicates=closing.spans - new_spans,
        fits=len(ids) <= windows.max_spans and sum(map(len, pieces)) <= windows.max_bytes,
    )


def keep_session(trace: Trace, old: Trace) -> tuple[Trace, bool]:
    """Keep a revised trace in the session where it first closed; also returns whether it would have moved."""
    moved = (trace.service, trace.session_id) != (old.service, old.session_id)
    if not moved and trace.session_source == old.session_source:
        return trace, False
    stayed = replace(
        trace,
        service=old.service,
        session_id=old.session_id,
        session_source=old.session_source,
    )
    return stayed, moved
