"""The open traces of one partition: every decision of assembly, as a function of records and log time.

Taking a record and ticking the clock return closings, in the order in which they were due. A closing stays in
`closings` until `complete`: its spans hold the low-water, and a span that comes for its trace meanwhile is late.
"""

from collections.abc import Collection, Generator, Sequence

from collector.assembly.closed_traces import ClosedTraces, ClosingMark
from collector.assembly.closing import Closing
from collector.assembly.made_traces import MadeTraces
from collector.assembly.open_trace import Glance, OpenTrace
from collector.assembly.scan import piece_of, scores_in, service_of, without_scores
from collector.assembly.trace_table import Arrival, TakeResult, TraceTable
from collector.base.errors import Undecodable
from collector.config.tree import TraceWindow
from collector.log.port import SPANS, Commit, Position, Record
from collector.otlp.scan import Scan, scan
from collector.records.span_refs import size_of
from evaluators.model import Closed

STEP = 64
"""Traces of one record, or traces that are due together, after which others may work.

A number and no time: what a record closes, and so what is written together, depends on it.
"""


class OpenTraces(TraceTable):
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
        super().__init__(partition, windows, closed_traces)
        self._by_ref = by_ref
        self.committed = (start, closed_traces.since)
        """The last commit: the low-water, and the offset of the oldest mark that still matters."""
        self._next = start
        self._glances: list[Glance] = []
        self._low_water, self._needed = self.closings.low_water, self.closings.needed
        self._made = MadeTraces(self, self._low_water, windows, closed_traces.turns)

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
        result.freed += [Position(SPANS, self.closings.partition, each) for each in free]
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
            is_known = trace is None and self.closings.newest_mark(trace_id) is not None
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

    def close(self, trace: OpenTrace, reason: Closed, *, at: float | None = None) -> Closing:
        closing = super().close(trace, reason, at=at)
        if trace.is_made:
            self._made.closed(closing, until=self._next or 0)
        return closing

    @property
    def low_water(self) -> int | None:
        """The oldest offset still needed; None while nothing has been read."""
        return None if self._next is None else self._low_water.commit_offset(self._next)

    @property
    def is_idle(self) -> bool:
        return not self.closings

    def commit(self, group: str) -> Commit | None:
        """What to commit now; None if nothing has changed since the last commit."""
        low_water = self.low_water
        if low_water is None:
            return None
        self.closings.written.forget(self.now, self._windows, is_needed=self._is_needed)
        if (low_water, self.closings.written.since) == self.committed:
            return None
        return Commit(
            group=group,
            topic=SPANS,
            partition=self.closings.partition,
            offset=low_water,
            metadata=self.closings.written.since,
        )

    def evict(self) -> bool:
        """Forget the oldest closed trace; returns False if its mark is still needed."""
        return self.closings.written.evict(is_needed=self._is_needed)

    def _is_needed(self, trace_id: bytes, mark: ClosingMark) -> bool:
        low_water = self.low_water
        return (
            (low_water is not None and mark.last_offset >= low_water)
            or trace_id in self._open
            or trace_id in self.closings
        )
