"""What a closing becomes: a trace record and its mark, a mark alone, or nothing; and the log records of these.

Late spans: the record of a closed trace and the pieces that came after it become one trace again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec
from msgspec.structs import replace as with_fields

from collector.assembly.closed_traces import ClosedTrace
from collector.assembly.open_trace import Closing
from collector.assembly.scan import only, span_ids
from collector.base.telemetry import OTHER
from collector.config.tree import TraceWindow
from collector.log.port import CLOSINGS, TRACES, New, Position
from collector.reading.port import PackedTrace, ReadJob, Stays
from collector.records.closings import Mark
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.span_refs import Piece, size_of
from collector.records.trace_outcomes import fitted
from collector.records.trace_size import cut_trace, kept_spans, marked
from collector.records.trace_summary import headers_of, packed_trace, unpacked
from collector.records.traces import PackedTraceRecord, TraceRecord

LEAST_RECORD = 1 << 20
"""Bytes of a trace whose record every log takes (Kafka's default is a little more)."""
NO_RECORD = -1  # `Mark.traces_offset` of a trace that could not be read or written


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRevision:
    """A closing of late spans: the trace's mark, the record it names, and their pieces merged."""

    mark: ClosedTrace
    old: TraceRecord
    pieces: tuple[Piece, ...]  # those of the old record, then the new spans of the late pieces
    raw: tuple[bytes, ...]
    """The bytes of `pieces`: the log may drop those of the old record while a worker waits to read them."""
    seen: float  # log time at which the newest new span arrived
    new: int  # late spans that the trace did not have
    duplicates: int  # late spans that it had
    fits: bool  # whether the whole is within max_spans and max_bytes

    @property
    def stays(self) -> Stays:
        old = self.old.trace
        return Stays(
            service=old.service, session_id=old.session_id, session_source=old.session_source
        )

    @property
    def key(self) -> bytes:
        return session_key(self.old.trace.service, self.old.trace.session_id)


def read_job(closing: Closing) -> ReadJob:
    """What a worker is asked to read."""
    revision = closing.revision
    if revision is None:
        return ReadJob(
            trace_id=closing.trace_id,
            pieces=closing.pieces,
            closed=closing.reason,
            service=closing.service,
            is_made=closing.turn is not None and not closing.is_named,
        )
    return ReadJob(
        trace_id=bytes.fromhex(revision.old.trace.trace_id),
        pieces=revision.raw,
        closed=closing.reason,
        service=closing.service,
        stays=revision.stays,
    )


def read_result(closing: Closing, trace: PackedTrace | None) -> ClosedResult:
    """The result for a trace that a worker has read: its record and its mark; None: no worker could read it."""
    if trace is None:
        return unreadable(closing, "no worker could read it")
    head, revision = trace.head, closing.revision
    number = 0 if revision is None else revision.mark.revision + 1
    own = session_key(head.service, head.session_id)
    record = PackedTraceRecord(
        trace=msgspec.Raw(trace.packed),
        spans=kept_spans(closing.pieces if revision is None else revision.pieces),
        revision=number,
        seen=closing.times[-1] if revision is None else revision.seen,
        session_changed=head.session_changed,
        randomness=head.randomness,
    )
    return ClosedResult(
        closing=closing,
        record=record,
        mark=_mark(closing, revision=number, key=own if revision is None else revision.key),
        summary=trace.summary,
        outcomes=trace.outcomes,
        service=head.service,
        gaps=head.gaps,
        duplicates=0 if revision is None else revision.duplicates,
    )


def unreadable(closing: Closing, reason: str) -> ClosedResult:
    """The result for a trace that can never be read or written: only its mark. A revision keeps the old record."""
    if closing.revision is None:
        mark = _mark(closing, revision=0, key=b"")
    else:
        old = closing.revision.mark
        mark = _mark(closing, revision=old.revision, key=closing.revision.key)
        mark = with_position(mark, Position(TRACES, old.traces_partition, old.traces_offset))
    return ClosedResult(closing=closing, mark=mark, poison=reason)


def ignored(closing: Closing) -> ClosedResult:
    mark = closing.owner.closed_traces.get(closing.trace_id)
    service = OTHER if mark is None else mark.service
    return ClosedResult(closing=closing, service=service, ignored=closing.spans)


def _mark(closing: Closing, *, revision: int, key: bytes) -> Mark:
    return Mark(
        trace_id=closing.trace_id,
        last_offset=closing.last_offset,
        revision=revision,
        session_key=key,
        traces_partition=0,
        traces_offset=NO_RECORD,
        closed_at=closing.closed_at,
        local_root=closing.root == "local",
        rootless=closing.root == "missing",
        turn=closing.turn,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedResult:
    """One closing, ready to be written: its record and its mark, where it has them."""

    closing: Closing
    record: PackedTraceRecord | None = None
    mark: Mark | None = None
    summary: bytes = b""  # the msgpack of the trace's summary; empty: it has none
    outcomes: bytes = b""  # the same of what evaluators say of it
    poison: str | None = None  # why the trace is passed over
    service: str = ""
    duplicates: int = 0  # late spans that the trace had already
    gaps: tuple[str, ...] = ()  # names of what the trace lacks
    ignored: int = 0  # late spans that came too late for a revision

    def smaller(self) -> ClosedResult:
        """The same without the raw spans, the trace cut to LEAST_RECORD.

        Without its spans a trace can be scored, but neither revised nor read again by a replay.
        """
        record = self.record
        if record is None:
            return self
        trace = unpacked(record.trace)
        outcomes = fitted(self.outcomes, LEAST_RECORD // 4)
        trace = cut_trace(marked(trace), LEAST_RECORD - len(self.summary) - len(outcomes))
        smaller = with_fields(record, trace=msgspec.Raw(packed_trace(trace)), spans=())
        return replace(self, record=smaller, gaps=trace.gaps, outcomes=outcomes)

    @property
    def size(self) -> int:
        """Bytes that trace and headers take until they are written."""
        if self.record is None:
            return 0
        return memoryview(self.record.trace).nbytes + len(self.summary) + len(self.outcomes)

    @property
    def written(self) -> int:
        spans = () if self.record is None else self.record.spans
        return self.size + sum(len(each) for each in spans if isinstance(each, bytes))

    @property
    def records(self) -> list[New]:
        if self.mark is None:
            return []
        if self.record is None:
            return [self._closing(encode(self.mark))]
        mark = self.mark
        trace = New(
            topic=TRACES,
            key=mark.session_key,
            value=encode(self.record),
            headers=headers_of(
                self.summary,
                self.outcomes,
                revision=self.record.revision,
                seen=self.record.seen,
            ),
        )
        return [trace, self._closing(lambda before: encode(with_position(mark, before[-1])))]

    def _closing(self, value: bytes | Callable[[Sequence[Position]], bytes]) -> New:
        partition = self.closing.owner.partition
        return New(topic=CLOSINGS, key=self.closing.trace_id, value=value, partition=partition)


def with_position(mark: Mark, position: Position) -> Mark:
    return with_fields(mark, traces_partition=position.partition, traces_offset=position.offset)


def late_revision(
    mark: ClosedTrace,
    old: TraceRecord,
    closing: Closing,
    windows: TraceWindow,
    *,
    raw_old: Sequence[bytes],
    raw_late: Sequence[bytes | None],
) -> LateRevision:
    """Append the late pieces of `closing` to the pieces of the record. `new` is 0 if there is nothing to revise.

    `raw_old`, `raw_late`: the bytes of the record's pieces and of the closing's; None: the log has lost it.
    Raises Undecodable: a piece of the old record is not an ExportTraceServiceRequest.
    """
    ids = span_ids(raw_old)
    pieces, bytes_of = list(old.spans), list(raw_old)
    seen = old.seen
    before = len(ids)
    for piece, raw, time in zip(closing.pieces, raw_late, closing.times, strict=True):
        late_ids = span_ids(() if raw is None else (raw,))
        new = late_ids - ids
        if raw is not None and new:
            cut = raw if new == late_ids else only(raw, None, new)
            pieces.append(piece if cut is raw else cut)
            bytes_of.append(cut)
            seen = time
            ids |= new
    new_spans = len(ids) - before
    return LateRevision(
        mark=mark,
        old=old,
        pieces=tuple(pieces),
        raw=tuple(bytes_of),
        seen=seen,
        new=new_spans,
        duplicates=closing.spans - new_spans,
        fits=len(ids) <= windows.max_spans and sum(map(size_of, pieces)) <= windows.max_bytes,
    )
