"""What a closing came to: a trace record and its mark, a mark alone, or nothing; and the records that say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from collector.assembly.buffer import Buffer
from collector.assembly.closing import Closing
from collector.assembly.late import Merged, keep_session
from collector.assembly.marks import Remembered
from collector.log.port import CLOSINGS, TRACES, New, Position
from collector.pool.port import PackedTrace
from collector.records.closings import Mark
from collector.records.codec import encode
from collector.records.session_key import session_key
from collector.records.traces import PackedTraceRecord, TraceRecord
from evaluators.model import Trace

NO_RECORD = -1
"""`Mark.traces_offset` of a trace that could not be read or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """What a late closing builds on: the trace's mark, the record it names, and both merged."""

    mark: Remembered
    old: TraceRecord
    merged: Merged

    @property
    def key(self) -> bytes:
        """The session in which the trace first closed."""
        return session_key(self.old.trace.service, self.old.trace.session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """One closing, ready to be written. Without `record` only its mark is, without `mark` nothing is."""

    buffer: Buffer
    """Where it came from; perhaps no longer an owned partition's."""
    closing: Closing
    revision: Revision | None = None
    record: TraceRecord | PackedTraceRecord | None = None
    mark: Mark | None = None
    poison: str | None = None
    """Why the trace is passed over."""
    service: str = ""
    duplicates: int = 0
    """Late spans that the trace had already."""
    gaps: tuple[str, ...] = ()
    """What the trace lacks."""
    ignored: int = 0
    """Late spans that came too late."""

    @property
    def news(self) -> list[New]:
        """The trace record, then the mark that names its position (DESIGN section 4, rule 4)."""
        if self.mark is None:
            return []
        if self.record is None:
            return [self._closing(encode(self.mark))]
        mark = self.mark
        trace = New(topic=TRACES, key=mark.session_key, value=encode(self.record))
        return [trace, self._closing(lambda before: encode(placed(mark, before[-1])))]

    def _closing(self, value: bytes | Callable[[Sequence[Position]], bytes]) -> New:
        key, partition = self.closing.trace_id, self.closing.partition
        return New(topic=CLOSINGS, key=key, value=value, partition=partition)

    def unwritable(self, why: str) -> Finished:
        """The same, when its record can never be written."""
        return unread(self.buffer, self.closing, self.revision, why)


def placed(mark: Mark, position: Position) -> Mark:
    """The mark, naming its trace's record."""
    return msgspec.structs.replace(
        mark, traces_partition=position.partition, traces_offset=position.offset
    )


def written(
    buffer: Buffer, closing: Closing, revision: Revision | None, trace: Trace | PackedTrace
) -> Finished:
    """A trace that was read: its record, and the mark to follow it."""
    if revision is None:
        return _first(buffer, closing, trace)
    return _revised(buffer, closing, revision, _unpacked(trace))


def _unpacked(trace: Trace | PackedTrace) -> Trace:
    return trace.unpack() if isinstance(trace, PackedTrace) else trace


def _first(buffer: Buffer, closing: Closing, trace: Trace | PackedTrace) -> Finished:
    pieces, seen = closing.pieces, closing.times[-1]
    if isinstance(trace, PackedTrace):
        head = trace.head
        record = PackedTraceRecord(trace=trace.packed, spans=pieces, revision=0, seen=seen)
    else:
        head = trace
        record = TraceRecord(trace=trace, spans=pieces, revision=0, seen=seen)
    return Finished(
        buffer=buffer,
        closing=closing,
        record=record,
        mark=_mark(closing, revision=0, key=session_key(head.service, head.session_id)),
        service=head.service,
        gaps=head.gaps,
    )


def _revised(buffer: Buffer, closing: Closing, revision: Revision, trace: Trace) -> Finished:
    trace, changed = keep_session(trace, revision.old.trace)
    number = revision.mark.revision + 1
    return Finished(
        buffer=buffer,
        closing=closing,
        revision=revision,
        record=TraceRecord(
            trace=trace,
            spans=revision.merged.pieces,
            revision=number,
            seen=revision.merged.seen,
            session_changed=changed,
        ),
        mark=_mark(closing, revision=number, key=revision.key),
        service=trace.service,
        gaps=trace.gaps,
        duplicates=revision.merged.duplicates,
    )


def unread(buffer: Buffer, closing: Closing, revision: Revision | None, why: str) -> Finished:
    """A trace that can never be read or written: marked closed all the same. A revision leaves the old record."""
    if revision is None:
        mark = _mark(closing, revision=0, key=b"")
    else:
        known = revision.mark
        mark = _mark(closing, revision=known.revision, key=revision.key)
        mark = placed(mark, Position(TRACES, known.traces_partition, known.traces_offset))
    return Finished(buffer=buffer, closing=closing, revision=revision, mark=mark, poison=why)


def _mark(closing: Closing, *, revision: int, key: bytes) -> Mark:
    return Mark(
        trace_id=closing.trace_id,
        reach=closing.reach,
        revision=revision,
        session_key=key,
        traces_partition=0,
        traces_offset=NO_RECORD,
        closed_at=closing.closed_at,
        local_root=closing.root == "local",
        rootless=closing.root == "missing",
    )
