"""The open traces of one partition: every decision of assembly, as a function of records and log time.

Taking a record and ticking the clock return closings, in the order in which they were due. A closing stays here until
`complete`: its spans hold the low-water, and a span that comes for its trace meanwhile is late.
"""

from collections import OrderedDict
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import replace

from collector.assembly.closed_traces import ClosedTraces, ClosingMark, is_forgotten, may_revise
from collector.assembly.closing import Closing
from collector.assembly.low_water import LowWater, NeededRecords
from collector.assembly.made_traces import Arrival, MadeTraces, TakeResult
from collector.assembly.open_trace import Glance, OpenTrace
from collector.assembly.scan import piece_of, scores_in, service_of, without_scores
from collector.assembly.service_queues import ServiceQueues, Shares
from collector.assembly.timers import Timers
from collector.base.errors import Undecodable
from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Commit, Position, Record
from collector.otlp.scan import Scan, scan
from collector.otlp.span_head import SpanHead
from collector.records.closings import Mark
from collector.records.span_refs import Piece, size_of
from evaluators.model import Closed, Root

STEP = 64
"""Traces of one record, or traces that are due together, after which others may work.

A number and no time: what a record closes, and so what is written together, depends on it.
"""


class OpenTraces:
    """The open traces of one partition of `spans`, and those on their way to the log.

    Args:
        partition: Of `spans`.
        closed_traces: Those that closed before, read back from `closings`.
        start: The committed offset that reading goes on from; None: from the oldest record.
        by_ref: Whether the log can be asked for parts of records: traces then hold where their spans are.
    """

    def __init__(
        self,
        partition: int,
        windows: TraceWindow,
        closed_traces: ClosedTraces,
        *,
        start: int | None,
        by_ref: bool = False,
    ) -> None:
        self.partition = partition
        self._by_ref = by_ref
        self.closed_traces = closed_traces
        self.now = 0.0  # the newest log time known
        self.committed = (start, closed_traces.since)
        """The last commit: the low-water, and the offset of the oldest mark that still matters."""
        self._windows = windows
        self._next = start
        self._open: OrderedDict[bytes, OpenTrace] = OrderedDict()
        self._queues = ServiceQueues()
        self._closing: dict[bytes, list[Closing]] = {}
        self._timers = Timers(windows)
        self._glances: list[Glance] = []
        self._is_owned = True
        self._low_water = LowWater()
        self._needed = NeededRecords()
        self._made = MadeTraces(self, self._low_water, windows, closed_traces.turns)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open(self) -> Collection[OpenTrace]:
        return self._open.values()

    @property
    def size(self) -> int:
        """Bytes of memory that the open traces take."""
        return self._queues.size

    @property
    def closings(self) -> Iterator[Closing]:
        return (each for closings in self._closing.values() for each in closings)

    def join(self, shares: Shares) -> None:
        """The process owns the partition: what its traces take counts in `shares`, until `leave`."""
        self._is_owned = True
        self._queues.join(shares)

    def leave(self) -> None:
        self._is_owned = False
        self._queues.leave()

    def taking(self, record: Record) -> Generator[None, None, TakeResult]:
        """Close what was due at the record's log time, then take the record.

        Between two steps others may work. Until the last one is done, no commit passes the record.
        """
        offset = record.position.offset
        if self._next is not None and offset < self._next:  # taken before the partition came back
            return TakeResult(needed=True)
        result = yield from self.ticking(record.time)
        self._next = offset + 1
        try:
            held = scan(record.value)
            scores = scores_in(record.value)
        except Undecodable as error:
            result.poison = str(error)
            return result
        result.invalid = held.invalid
        hold = self._low_water.hold(offset)  # before others work: a commit would pass the record
        self._needed.begin(offset, len(held.traces))
        yield
        takers = 0
        for number, trace_id in enumerate(held.traces, start=1):
            takers += yield from self._take(record, held, trace_id, scores.get(trace_id), result)
            if number % STEP == 0:
                yield
        self._low_water.release(hold)
        self._made.settle(offset + 1, result)
        is_needed = self._needed.taken(offset, takers, len(held.traces))
        result.needed = is_needed and not self._drop(result, offset)
        return result

    def _drop(self, result: TakeResult, offset: int = -1) -> bool:
        """Free the records that nothing needs of which parts were dropped; returns whether that at `offset` is one."""
        free = [each for each in result.dropped if self._needed.release(each)]
        result.dropped.clear()
        result.freed += [Position(SPANS, self.partition, each) for each in free]
        return offset in free

    def ticking(self, now: float) -> Generator[None, None, TakeResult]:
        """Close what was due at log time `now`; between two steps others may work."""
        self.now = max(self.now, now)
        result = TakeResult()
        for trace, deadline in self._timers.due(now, self._glances.append):
            if trace.is_made:
                self._made.straighten(trace, result)
            if not trace.is_closed:
                result.closings.append(self.close(trace, deadline.reason, at=deadline.at))
            if len(result.closings) % STEP == 0:
                yield
        self._drop(result)
        return result

    def straighten(self) -> TakeResult:
        result = TakeResult()
        for trace in [each for each in self._open.values() if each.is_made]:
            if not trace.is_closed:
                self._made.straighten(trace, result)
        self._drop(result)
        return result

    def take_glances(self) -> Sequence[Glance]:
        if not self._glances:
            return ()
        glances = (*self._glances,)
        self._glances.clear()  # the timers hold the list
        return glances

    def as_closing(self, glance: Glance) -> Closing:
        """What is to be looked at, as if it had closed when the glance was due; nothing is written of it."""
        whole = glance.trace.as_closing("idle", at=self.now)
        part = slice(glance.first, glance.end)
        return replace(whole, pieces=whole.pieces[part], times=whole.times[part])

    def is_open(self, trace: OpenTrace) -> bool:
        return self._is_owned and not trace.is_closed and trace.trace_id not in self._closing

    def _take(
        self,
        record: Record,
        held: Scan,
        trace_id: bytes,
        scores: Collection[bytes] | None,
        result: TakeResult,
    ) -> Generator[None, None, bool]:
        """Take the record's spans of one trace, some of them `scores`; returns whether any is needed for it."""
        spans = held.traces[trace_id]
        service = service_of(held.resources[trace_id])
        segment = held.segments.get(trace_id)
        if segment is not None:
            piece = piece_of(record, held, trace_id, spans, by_ref=self._by_ref)
            return (yield from self._made.take(record, segment, spans, piece, service, result))
        trace = self._open.get(trace_id)
        if scores and not self.is_reread(trace_id, record.position.offset):
            rest = without_scores(spans, scores)
            is_known = trace is None and self._newest_mark(trace_id) is not None
            # No score opens a trace or re-opens one: the ids of our own signals would change.
            if is_known or (trace.reopened if trace else not rest):
                result.late[service, "score"] += len(spans) - len(rest)
                spans = rest
        came = Arrival(record.position.offset, record.time, service, len(spans))
        if trace is None and spans:
            trace = self.admit(trace_id, came, result)
        if trace is None:
            return False
        new = trace.new(spans)
        result.duplicates += len(spans) - len(new)
        if not new:
            trace.last_offset = record.position.offset
            return False
        piece = piece_of(record, held, trace_id, new, by_ref=self._by_ref)
        if trace.pieces and trace.size + size_of(piece) > self._windows.max_bytes:
            result.closings.append(self.close(trace, "max_bytes", at=record.time))
            result.duplicates -= len(spans) - len(new)
            return (yield from self._take(record, held, trace_id, scores, result))
        self.add(trace, new, piece, came, result)
        return True

    def opened(self, trace_id: bytes) -> OpenTrace | None:
        return self._open.get(trace_id)

    def add(
        self,
        trace: OpenTrace,
        new: Sequence[SpanHead],
        piece: Piece,
        at: Arrival,
        result: TakeResult,
    ) -> None:
        """Add a piece with its new spans to an open trace; it may be full then, and closes."""
        cost = trace.cost
        trace.add(new, piece, offset=at.offset, time=at.time)
        self._queues.grow(trace, trace.cost - cost)
        if len(trace.ids) >= self._windows.max_spans:
            result.closings.append(self.close(trace, "max_spans", at=at.time))
        elif trace.size >= self._windows.max_bytes:
            result.closings.append(self.close(trace, "max_bytes", at=at.time))
        else:
            self._timers.arm(trace)

    def arm(self, trace: OpenTrace) -> None:
        """Its deadline may be earlier than it was."""
        self._timers.arm(trace)

    def changed(self, trace: OpenTrace, before: int) -> None:
        self._queues.grow(trace, trace.cost - before)

    def drop(self, trace: OpenTrace) -> None:
        """An open trace has nothing any more: all of it was another's."""
        trace.is_closed = True
        del self._open[trace.trace_id]
        self._queues.remove(trace)
        self._low_water.release(trace.hold)
        trace.let_go()

    def admit(self, trace_id: bytes, came: Arrival, result: TakeResult) -> OpenTrace | None:
        """Open or re-open a trace; None if the record is re-read or too late."""
        mark = self._newest_mark(trace_id)
        if mark is not None and came.offset <= mark.last_offset:
            return None
        if mark is None or is_forgotten(mark, came.time, self._windows):
            return self._open_trace(trace_id, came, None)
        if may_revise(mark, came.time, self._windows):
            return self._open_trace(trace_id, came, mark.root)
        result.late[mark.service, "ignored"] += came.spans
        return None

    def is_reread(self, trace_id: bytes, offset: int) -> bool:
        mark = self._newest_mark(trace_id)
        return mark is not None and offset <= mark.last_offset

    def _newest_mark(self, trace_id: bytes) -> ClosingMark | None:
        in_flight = self._closing.get(trace_id)
        return in_flight[-1].provisional_mark if in_flight else self.closed_traces.get(trace_id)

    def _open_trace(self, trace_id: bytes, came: Arrival, reopened: Root | None) -> OpenTrace:
        trace = OpenTrace(
            trace_id=trace_id,
            owner=self,
            first_time=came.time,
            hold=self._low_water.hold(came.offset),
            reopened=reopened,
            service=came.service,
        )
        trace.glance_every_doubling(self._windows.glance)
        self._open[trace_id] = trace
        self._queues.add(trace)
        return trace

    def oldest(self, service: str | None = None) -> OpenTrace | None:
        if service is not None:
            return self._queues.oldest(service)
        return next(iter(self._open.values()), None)

    def drain(self, *, rootless: Closed) -> list[Closing]:
        """Close every open trace, at the newest log time known."""
        return [
            self.close(trace, rootless if trace.root == "missing" else "root_ended")
            for trace in list(self._open.values())
        ]

    def close(self, trace: OpenTrace, reason: Closed, *, at: float | None = None) -> Closing:
        """Close an open trace, as due at log time `at`; None: at the newest log time known."""
        at = self.now if at is None else at
        trace.is_closed = True
        del self._open[trace.trace_id]
        self._queues.remove(trace)
        self._timers.sweep(len(self._open))
        closing = trace.as_closing(reason, at=at)
        if trace.is_made:
            self._made.closed(closing, until=self._next or 0)
        trace.let_go()
        self._closing.setdefault(trace.trace_id, []).append(closing)
        return closing

    def is_first(self, closing: Closing) -> bool:
        return self._closing[closing.trace_id][0] is closing

    def revisable_mark(self, closing: Closing) -> ClosingMark | None:
        """The mark that a late closing builds on, its predecessor being complete; None if it is too late."""
        mark = self.closed_traces.get(closing.trace_id)
        if mark is None or not may_revise(mark, closing.times[0], self._windows):
            return None
        return mark

    def release_hold(self, closing: Closing) -> None:
        """The closing is part of the next write, whose commit may therefore pass it."""
        self._low_water.release(closing.hold)
        for hold in closing.more_holds:
            self._low_water.release(hold)

    def complete(
        self, closing: Closing, mark: Mark | None = None, offset: int = 0
    ) -> list[Position]:
        """The closing is written (its mark at `offset`) or passed over; returns the records that no trace needs now."""
        chain = self._closing[closing.trace_id]
        chain.remove(closing)
        if not chain:
            del self._closing[closing.trace_id]
        if mark is not None:
            self.closed_traces.add(mark, offset)
        return [
            Position(SPANS, self.partition, offset)
            for offset in closing.offsets
            if self._needed.release(offset)
        ]

    @property
    def low_water(self) -> int | None:
        """The oldest offset still needed; None while nothing has been read."""
        return None if self._next is None else self._low_water.commit_offset(self._next)

    @property
    def is_idle(self) -> bool:
        return not self._closing

    def commit(self, group: str) -> Commit | None:
        """What to commit now; None if nothing has changed since the last commit."""
        low_water = self.low_water
        if low_water is None:
            return None
        self.closed_traces.forget(self.now, self._windows, is_needed=self._is_needed)
        if (low_water, self.closed_traces.since) == self.committed:
            return None
        return Commit(
            group=group,
            topic=SPANS,
            partition=self.partition,
            offset=low_water,
            metadata=self.closed_traces.since,
        )

    def evict(self) -> bool:
        """Forget the oldest closed trace; returns False if its mark is still needed."""
        return self.closed_traces.evict(is_needed=self._is_needed)

    def _is_needed(self, trace_id: bytes, mark: ClosingMark) -> bool:
        low_water = self.low_water
        return (
            (low_water is not None and mark.last_offset >= low_water)
            or trace_id in self._open
            or trace_id in self._closing
        )
