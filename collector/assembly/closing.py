"""A trace that has closed: what a worker is asked to read, and the log records of what it answered.

Late spans: the record of a closed trace and the pieces that came after it become one trace again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
from msgspec.structs import replace

from collector.assembly.closed_traces import ClosedTraces, ClosingMark, may_revise
from collector.assembly.low_water import Hold, LowWater, NeededRecords
from collector.assembly.scan import only, span_ids
from collector.base.telemetry import OTHER
from collector.config.tree import TraceWindow
from collector.log.port import CLOSINGS, SPANS, TRACES, New, Position
from collector.reading.port import PackedTrace, ReadJob, Stays
from collector.records.closings import Mark, TurnFacts
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.span_refs import Piece, size_of
from collector.records.trace_outcomes import fitted
from collector.records.trace_size import cut_trace, kept_spans, marked
from collector.records.trace_summary import headers_of, packed_trace, unpacked
from collector.records.traces import TraceRecord
from evaluators.model import Closed, Root, Trace

LEAST_RECORD = 1 << 20
"""Bytes of a trace whose record every log takes (Kafka's default is a little more)."""
NO_RECORD = -1  # `Mark.traces_offset` of a trace that could not be read or written


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRevision:
    """The trace that late spans belong to: its mark, the record it names, and the pieces of both merged."""

    mark: ClosingMark
    old: TraceRecord
    pieces: tuple[Piece, ...]  # those of the old record, then the new spans of the late pieces
    raw: tuple[bytes, ...]
    """The bytes of `pieces`: the log may drop those of the old record while a worker waits to read them."""
    seen: float  # log time at which the newest new span arrived
    new: int  # late spans that the trace did not have
    duplicates: int  # late spans that it had
    fits: bool  # whether the whole is within max_spans and max_bytes


@dataclass(slots=True, kw_only=True, eq=False)
class Closing:
    """A trace that has closed and is not written yet; until then its spans are needed."""

    trace_id: bytes
    closings: PartitionClosings  # where it closed; the partition may have another owner meanwhile
    service: str  # that of its first piece
    reason: Closed
    closed_at: float  # log time at which it was due, not when that was noticed
    last_offset: int  # of the last record that held spans of it
    root: Root
    late: bool  # re-opened by late spans: merged with the record that its mark names
    pieces: tuple[Piece, ...]
    times: Sequence[float]  # log time of each piece
    offsets: Sequence[int]  # offset of each piece
    spans: int
    size: int  # bytes of its pieces
    cost: int  # bytes of memory that it took while it was open
    hold: Hold
    more_holds: Sequence[Hold] = ()
    turn: TurnFacts | None = None  # of a made trace
    is_named: bool = False  # a signal named it by its id while it was open
    revision: LateRevision | None = None
    """Of late spans, once they are joined with the record of their trace."""
    trace: PackedTrace | None = None
    """What a worker made of it, once it has; None: only its mark is written."""
    poison: str | None = None  # why it can never be read or written
    is_cut: bool = False  # it was too large for its record, which goes without its raw spans

    @property
    def provisional_mark(self) -> ClosingMark:
        """Stands for its mark until that is written: it admits late spans."""
        return ClosingMark(
            offset=0,
            last_offset=self.last_offset,
            revision=-1,
            closed_at=self.closed_at,
            traces_partition=0,
            traces_offset=0,
            root=self.root,
            service=OTHER,
        )

    @property
    def is_written(self) -> bool:
        """Whether anything is: late spans may be there already, come too late, or be too many."""
        if not self.late:
            return True
        return self.revision is not None and self.revision.new > 0 and self.revision.fits

    @property
    def number(self) -> int:
        return 0 if self.revision is None else self.revision.mark.revision + 1

    @property
    def seen(self) -> float:
        return max(self.times) if self.revision is None else self.revision.seen

    @property
    def job(self) -> ReadJob:
        if self.revision is None:
            return ReadJob(
                trace_id=self.trace_id,
                pieces=self.pieces,
                closed=self.reason,
                service=self.service,
                is_made=self.turn is not None and not self.is_named,
            )
        old = self.revision.old.trace
        return ReadJob(
            trace_id=bytes.fromhex(old.trace_id),
            pieces=self.revision.raw,
            closed=self.reason,
            service=self.service,
            stays=Stays(
                service=old.service, session_id=old.session_id, session_source=old.session_source
            ),
        )

    def cannot_be(self, poison: str) -> None:
        """It can never be read or written: only its mark is. A revision keeps the old record."""
        self.trace, self.poison = None, poison

    def cut(self) -> None:
        """Make it smaller: its record without the raw spans, the trace cut to LEAST_RECORD.

        Without its spans a trace can be scored, but neither revised nor read again by a replay.
        """
        read = self.trace
        if read is None:
            return
        outcomes = fitted(read.outcomes, LEAST_RECORD // 4)
        room = LEAST_RECORD - len(read.summary) - len(outcomes)
        trace = cut_trace(marked(unpacked(read.packed)), room)
        packed = packed_trace(trace)
        self.trace = replace(read, packed=packed, gaps=trace.gaps, outcomes=outcomes)
        self.is_cut = True

    @property
    def read_size(self) -> int:
        """Bytes that the trace that was read and its headers take until they are written."""
        trace = self.trace
        return 0 if trace is None else len(trace.packed) + len(trace.summary) + len(trace.outcomes)

    @property
    def written_size(self) -> int:
        spans = () if self.trace is None else self._kept
        return self.read_size + sum(len(each) for each in spans if isinstance(each, bytes))

    @property
    def _kept(self) -> tuple[Piece, ...]:
        if self.is_cut:
            return ()
        return kept_spans(self.pieces if self.revision is None else self.revision.pieces)

    @property
    def mark(self) -> Mark:
        """Without the position of its record, where one is written with it."""
        revision, trace = self.revision, self.trace
        mark = Mark(
            trace_id=self.trace_id,
            last_offset=self.last_offset,
            revision=self.number,
            session_key=b"" if trace is None else session_key(trace.service, trace.session_id),
            traces_partition=0,
            traces_offset=NO_RECORD,
            closed_at=self.closed_at,
            local_root=self.root == "local",
            rootless=self.root == "missing",
            turn=self.turn,
        )
        if revision is None:
            return mark
        old = revision.old.trace
        mark = replace(mark, session_key=session_key(old.service, old.session_id))
        if trace is not None:
            return mark
        kept = revision.mark
        position = Position(TRACES, kept.traces_partition, kept.traces_offset)
        return with_position(replace(mark, revision=kept.revision), position)

    @property
    def records(self) -> list[New]:
        """The trace and its mark, the mark alone, or nothing."""
        if not self.is_written:
            return []
        mark, read = self.mark, self.trace
        if read is None:
            return [self._closing(encode(mark))]
        record = TraceRecord(
            trace=cast("Trace", msgspec.Raw(read.packed)),  # written as the worker packed it
            spans=self._kept,
            revision=self.number,
            seen=self.seen,
            randomness=read.randomness,
        )
        trace = New(
            topic=TRACES,
            key=mark.session_key,
            value=encode(record),
            headers=headers_of(
                read.summary, read.outcomes, revision=record.revision, seen=record.seen
            ),
        )
        return [trace, self._closing(lambda before: encode(with_position(mark, before)))]

    def _closing(self, value: bytes | Callable[[Position], bytes]) -> New:
        partition = self.closings.partition
        return New(topic=CLOSINGS, key=self.trace_id, value=value, partition=partition)


class PartitionClosings:
    """What has closed in one partition: closings until they are written, which hold the low-water; then their marks."""

    def __init__(self, partition: int, written: ClosedTraces, windows: TraceWindow) -> None:
        self.partition = partition
        self.written = written
        self.low_water = LowWater()
        self.needed = NeededRecords()
        self.is_owned = True  # the process has the partition
        self._windows = windows
        self._unwritten: dict[bytes, list[Closing]] = {}

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._unwritten

    def __len__(self) -> int:
        return len(self._unwritten)

    def __iter__(self) -> Iterator[Closing]:
        return (each for closings in self._unwritten.values() for each in closings)

    def add(self, closing: Closing) -> None:
        self._unwritten.setdefault(closing.trace_id, []).append(closing)

    def newest_mark(self, trace_id: bytes) -> ClosingMark | None:
        unwritten = self._unwritten.get(trace_id)
        return unwritten[-1].provisional_mark if unwritten else self.written.get(trace_id)

    def is_first(self, closing: Closing) -> bool:
        return self._unwritten[closing.trace_id][0] is closing

    def revisable_mark(self, closing: Closing) -> ClosingMark | None:
        """The mark that a late closing builds on, its predecessor being complete; None if it is too late."""
        mark = self.written.get(closing.trace_id)
        if mark is None or not may_revise(mark, closing.times[0], self._windows):
            return None
        return mark

    def release_hold(self, closing: Closing) -> None:
        """The closing is part of the next write, whose commit may therefore pass it."""
        self.low_water.release(closing.hold)
        for hold in closing.more_holds:
            self.low_water.release(hold)

    def complete(
        self, closing: Closing, mark: Mark | None = None, offset: int = 0
    ) -> list[Position]:
        """The closing is written (its mark at `offset`) or passed over; returns the records that no trace needs now."""
        chain = self._unwritten[closing.trace_id]
        chain.remove(closing)
        if not chain:
            del self._unwritten[closing.trace_id]
        if mark is not None:
            self.written.add(mark, offset)
        return [
            Position(SPANS, self.partition, offset)
            for offset in closing.offsets
            if self.needed.release(offset)
        ]


def with_position(mark: Mark, position: Position) -> Mark:
    return replace(mark, traces_partition=position.partition, traces_offset=position.offset)


def late_revision(
    mark: ClosingMark,
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
    fits = len(ids) <= windows.max_spans and sum(map(size_of, pieces)) <= windows.max_bytes
    is_read = fits and new_spans > 0  # nothing holds the bytes of what is passed over
    return LateRevision(
        mark=mark,
        old=old,
        pieces=tuple(pieces) if is_read else (),
        raw=tuple(bytes_of) if is_read else (),
        seen=seen,
        new=new_spans,
        duplicates=closing.spans - new_spans,
        fits=fits,
    )
