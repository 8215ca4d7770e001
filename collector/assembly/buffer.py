"""The open traces of one partition: every decision of assembly, as a function of records and log time.

A record is taken, or the clock ticks; what comes back are closings, in the order in which they were due. A closing
stays in the buffer until it is settled: its spans hold the low-water, and what comes for its trace meanwhile is late.
"""

from __future__ import annotations

from collections.abc import Sequence

from collector.assembly.closing import Closing, Step
from collector.assembly.low_water import LowWater
from collector.assembly.marks import Marks, Remembered
from collector.assembly.open_trace import OpenTrace
from collector.assembly.scan import Scan, only, scan
from collector.assembly.timers import Timers
from collector.config.tree import TraceWindow
from collector.errors import Undecodable
from collector.log.port import SPANS, Commit, Position, Record
from collector.otlp.span_head import SpanHead
from collector.records.closings import Mark
from collector.telemetry import OTHER
from evaluators.model import Closed, Root

REMEMBERED = 6
"""Closed traces are known for so many times `late`: a span that comes far too late must not open a second trace."""


class Buffer:
    """The open traces of one partition of `spans`.

    `start` is the committed offset that reading goes on from; None: from the oldest record.
    """

    def __init__(
        self, partition: int, windows: TraceWindow, marks: Marks, *, start: int | None
    ) -> None:
        self.partition = partition
        self.marks = marks
        self.size = 0
        """Bytes of the open traces' pieces."""
        self.now = 0.0
        """The newest log time known."""
        self.committed = (start, marks.since)
        """What the log was last told: the low-water and the offset of the oldest mark that matters."""
        self._windows = windows
        self._next = start
        self._open: dict[bytes, OpenTrace] = {}
        self._closing: dict[bytes, list[Closing]] = {}
        self._timers = Timers(windows)
        self._low_water = LowWater()
        self._shared: dict[int, int] = {}
        """Records that several traces need, by offset: how many still do."""

    def __len__(self) -> int:
        return len(self._open)

    # --- what comes in -------------------------------------------------------------------------------------------

    def take(self, record: Record) -> Step:
        """Close what was due at the record's time, then take the record (DESIGN section 4, rule 3)."""
        offset = record.position.offset
        if self._next is not None and offset < self._next:  # the partition came back: taken already
            return Step(needed=True)
        step = Step(closings=self.tick(record.time))
        self._next = offset + 1
        try:
            held = scan(record.value)
        except Undecodable as error:
            step.poison = str(error)
            return step
        step.invalid = held.invalid
        takers = sum(self._take(record, held, trace_id, step) for trace_id in held.traces)
        if takers > 1:
            self._shared[offset] = takers
        step.needed = takers > 0
        return step

    def tick(self, now: float) -> list[Closing]:
        """Close what was due at log time `now`."""
        self.now = max(self.now, now)
        return [
            self._close(trace, deadline.reason, at=deadline.at)
            for trace, deadline in self._timers.due(now)
        ]

    def _take(self, record: Record, held: Scan, trace_id: bytes, step: Step) -> bool:
        """Take the record's spans of one trace; False: nothing of the record is needed for it."""
        spans = held.traces[trace_id]
        trace = self._open.get(trace_id) or self._admit(trace_id, record, len(spans), step)
        if trace is None:
            return False
        new = trace.new(spans)
        step.duplicates += len(spans) - len(new)
        if not new:
            trace.reach = record.position.offset
            return False
        piece = self._piece(record.value, held, trace_id, new, whole=len(new) == len(spans))
        if trace.pieces and trace.size + len(piece) > self._windows.max_bytes:
            step.closings.append(self._close(trace, "max_bytes", at=record.time))
            step.duplicates -= len(spans) - len(new)
            return self._take(record, held, trace_id, step)
        self._add(trace, new, piece, record, step)
        return True

    @staticmethod
    def _piece(
        value: bytes, held: Scan, trace_id: bytes, new: Sequence[SpanHead], *, whole: bool
    ) -> bytes:
        """The record as it came when all of it is new, else cut down to what is."""
        if whole and held.is_clean:
            return value
        return only(value, trace_id, [span.span_id for span in new])

    def _add(
        self,
        trace: OpenTrace,
        new: Sequence[SpanHead],
        piece: bytes,
        record: Record,
        step: Step,
    ) -> None:
        trace.add(new, piece, offset=record.position.offset, time=record.time)
        self.size += len(piece)
        if len(trace.ids) >= self._windows.max_spans:
            step.closings.append(self._close(trace, "max_spans", at=record.time))
        elif trace.size >= self._windows.max_bytes:
            step.closings.append(self._close(trace, "max_bytes", at=record.time))
        else:
            self._timers.arm(trace)

    # --- a trace that is not open --------------------------------------------------------------------------------

    def _admit(self, trace_id: bytes, record: Record, spans: int, step: Step) -> OpenTrace | None:
        """Open or re-open a trace; None: a re-read, or too late."""
        mark = self._newest_mark(trace_id)
        if mark is not None and record.position.offset <= mark.reach:
            return None
        if mark is None or self._is_forgotten(mark.closed_at, record.time):
            return self._open_trace(trace_id, record, None)
        if self._may_revise(mark, record.time):
            return self._open_trace(trace_id, record, mark.root)
        step.ignored[mark.service] = step.ignored.get(mark.service, 0) + spans
        return None

    def _newest_mark(self, trace_id: bytes) -> Remembered | None:
        """The trace's mark; for one on its way what is known of it, the rest as lenient as it may turn out."""
        in_flight = self._closing.get(trace_id)
        if not in_flight:
            return self.marks.get(trace_id)
        last = in_flight[-1]
        return Remembered(
            offset=0,
            reach=last.reach,
            revision=-1,
            closed_at=last.closed_at,
            traces_partition=0,
            traces_offset=0,
            root=last.root,
            service=OTHER,
        )

    def _may_revise(self, mark: Remembered, time: float) -> bool:
        return (
            mark.position is not None
            and time - mark.closed_at <= self._windows.late
            and mark.revision < self._windows.max_revisions
        )

    def _is_forgotten(self, closed_at: float, now: float) -> bool:
        """By log time, not by what memory happens to hold: a reader that lags decides the same."""
        return now - closed_at > REMEMBERED * self._windows.late

    def _open_trace(self, trace_id: bytes, record: Record, reopened: Root | None) -> OpenTrace:
        hold = self._low_water.hold(record.position.offset)
        trace = OpenTrace(trace_id, time=record.time, hold=hold, reopened=reopened)
        self._open[trace_id] = trace
        return trace

    # --- what goes out -------------------------------------------------------------------------------------------

    @property
    def oldest(self) -> float | None:
        """Log time at which the oldest open trace was opened."""
        trace = next(iter(self._open.values()), None)
        return None if trace is None else trace.first_time

    def relieve(self) -> Closing:
        """Close the oldest open trace to make room; there must be one."""
        return self._close(next(iter(self._open.values())), "memory", at=self.now)

    def drain(self, *, rootless: Closed, rooted: Closed = "root_ended") -> list[Closing]:
        """Close every open trace, now."""
        return [
            self._close(trace, rootless if trace.root == "missing" else rooted, at=self.now)
            for trace in list(self._open.values())
        ]

    def _close(self, trace: OpenTrace, reason: Closed, *, at: float) -> Closing:
        trace.is_closed = True
        del self._open[trace.trace_id]
        self.size -= trace.size
        self._timers.sweep(len(self._open))
        closing = Closing(
            trace_id=trace.trace_id,
            partition=self.partition,
            reason=reason,
            closed_at=at,
            reach=trace.reach,
            root=trace.root,
            late=trace.reopened is not None,
            pieces=tuple(trace.pieces),
            times=trace.times,
            offsets=trace.offsets,
            spans=len(trace.ids),
            size=trace.size,
            hold=trace.hold,
        )
        self._closing.setdefault(trace.trace_id, []).append(closing)
        return closing

    # --- what has been written -----------------------------------------------------------------------------------

    def is_first(self, closing: Closing) -> bool:
        """Whether no earlier closing of the same trace is still on its way."""
        return self._closing[closing.trace_id][0] is closing

    def revisable(self, closing: Closing) -> Remembered | None:
        """The mark that a late closing builds on, its predecessor settled; None: it came too late after all."""
        mark = self.marks.get(closing.trace_id)
        if mark is None or not self._may_revise(mark, closing.times[0]):
            return None
        return mark

    def let_go(self, closing: Closing) -> None:
        """The closing is in the write about to be made: the commit of that same write may pass it."""
        self._low_water.release(closing.hold)

    def settle(self, closing: Closing, mark: Mark | None = None, offset: int = 0) -> list[Position]:
        """The closing is written (its mark at `offset`) or passed over; returns the records nobody needs now."""
        chain = self._closing[closing.trace_id]
        chain.remove(closing)
        if not chain:
            del self._closing[closing.trace_id]
        if mark is not None:
            self.marks.add(mark, offset)
        return [
            Position(SPANS, self.partition, offset)
            for offset in closing.offsets
            if self._is_free(offset)
        ]

    def _is_free(self, offset: int) -> bool:
        needed = self._shared.pop(offset, 1) - 1
        if needed:
            self._shared[offset] = needed
        return not needed

    # --- where to go on after a crash ----------------------------------------------------------------------------

    @property
    def low_water(self) -> int | None:
        """The oldest offset still needed; None while nothing has been read."""
        return None if self._next is None else self._low_water.below(self._next)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is on its way."""
        return not self._closing

    def commit(self, group: str) -> Commit | None:
        """What to commit now; None: the log knows it already."""
        low_water = self.low_water
        if low_water is None:
            return None
        horizon = self.now - REMEMBERED * self._windows.late
        self.marks.forget(before=horizon, is_needed=self._is_needed)
        if (low_water, self.marks.since) == self.committed:
            return None
        return Commit(
            group=group,
            topic=SPANS,
            partition=self.partition,
            offset=low_water,
            metadata=self.marks.since,
        )

    def evict(self) -> bool:
        """Forget the oldest closed trace for want of room; False: its mark is needed."""
        return self.marks.evict(is_needed=self._is_needed)

    def _is_needed(self, trace_id: bytes, mark: Remembered) -> bool:
        """A re-read from the low-water on would meet the mark, or late spans build on it."""
        low_water = self.low_water
        return (
            (low_water is not None and mark.reach >= low_water)
            or trace_id in self._open
            or trace_id in self._closing
        )
