"""Late spans: what closed once, and what came after it, become one trace again (DESIGN section 4, late spans)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from collector.assembly.closing import Closing
from collector.assembly.scan import only, scan, span_ids
from collector.config.tree import TraceWindow
from collector.records.traces import TraceRecord
from evaluators.model import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The old pieces, then what is new in the late ones."""

    pieces: tuple[bytes, ...]
    seen: float
    """Log time at which the newest new span came."""
    new: int
    """Late spans that the trace did not have."""
    duplicates: int
    """Late spans that it had."""
    fits: bool
    """Whether the whole is within max_spans and max_bytes."""


def merge(old: TraceRecord, closing: Closing, windows: TraceWindow) -> Merged:
    """Put the late pieces of `closing` behind the record they are late for. `new` 0: there is nothing to revise.

    Raises:
        Undecodable: a piece of the old record is not what it should be.
    """
    known = span_ids(old.spans)
    pieces = list(old.spans)
    seen = old.seen
    before = len(known)
    for piece, time in zip(closing.pieces, closing.times, strict=True):
        ids = {span.span_id for spans in scan(piece).traces.values() for span in spans}
        new = ids - known
        if new:
            pieces.append(piece if new == ids else only(piece, closing.trace_id, new))
            seen = time
            known |= new
    new_spans = len(known) - before
    return Merged(
        pieces=tuple(pieces),
        seen=seen,
        new=new_spans,
        duplicates=closing.spans - new_spans,
        fits=len(known) <= windows.max_spans and sum(map(len, pieces)) <= windows.max_bytes,
    )


def keep_session(trace: Trace, old: Trace) -> tuple[Trace, bool]:
    """A revised trace stays in the session where it first closed; says whether it would have moved."""
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
