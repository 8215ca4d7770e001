"""Open traces that are made of segments: each segment is put where it belongs, and moved when more is known.

What is decided here is decided by `Turns`; `TraceTable` does with made traces what it does with all: due times, bounds,
marks, late spans.
"""

from array import array
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from collector.assembly.closing import Closing
from collector.assembly.low_water import LowWater
from collector.assembly.open_trace import OpenTrace
from collector.assembly.owner import MOST_LOOKS, Owner
from collector.assembly.timeline import SEGMENT_COST, BufferedSegment
from collector.assembly.trace_table import Arrival, TakeResult, TraceTable
from collector.assembly.turns import Turns
from collector.config.tree import TraceWindow
from collector.log.port import Record
from collector.otlp.segment import Segment
from collector.otlp.span_head import SpanHead
from collector.records.span_refs import Piece, size_of

LOOKS = 32
"""Segments looked at again, because more is known, before the event loop may run other tasks."""


@dataclass(slots=True, eq=False)
class MadeTraces:
    """The made traces of one partition."""

    traces: TraceTable
    low_water: LowWater  # of the partition: each segment claims its record
    windows: TraceWindow
    turns: Turns
    """What is known of turns; closed ones are remembered and forgotten with their marks."""
    _owner_of: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])  # owner by open trace
    _undecided: list[tuple[int, bytes, bytes]] = field(
        default_factory=list[tuple[int, bytes, bytes]]
    )
    """Owners and closed turns with parked segments, by the offset up to which must be read first: a heap."""
    _repeated: dict[bytes, Counter[bytes]] = field(default_factory=dict[bytes, Counter[bytes]])
    """By open trace: the ids of spans that several of its segments have, once for each but the first."""
    _next: int = 0  # the offset below which everything has been read
    _time: float = 0.0  # log time of the newest record

    def take(
        self,
        record: Record,
        segment: Segment,
        spans: Sequence[SpanHead],
        piece: Piece,
        service: str,
        result: TakeResult,
    ) -> Generator[None, None, bool]:
        """Put a segment where it belongs; returns whether it is needed. Between two steps others may work."""
        offset = record.position.offset
        self._next, self._time = offset + 1, record.time
        owner = self.turns.owner(segment.owner)
        concerned = owner.learn(segment)
        held = BufferedSegment(
            segment=segment,
            spans=spans,
            piece=piece,
            offset=offset,
            time=record.time,
            hold=self.low_water.hold(offset),
            service=service,
        )
        is_needed = self._put(owner, held, result)
        turns = {owner.resolve(segment), owner.before(segment) or segment.turn, segment.turn}
        for number, each in enumerate(concerned, start=1):
            turns |= self._look(owner, each, result)
            if number % LOOKS == 0:
                yield
        for turn in turns:
            self._end_if_over(owner, turn)
        self.turns.sweep(segment.owner)
        return is_needed

    def settle(self, following: int, result: TakeResult) -> None:
        """Everything below `following` has been read: drop what closed traces are now known to have."""
        self._next = max(self._next, following)
        while self._undecided and self._undecided[0][0] <= self._next:
            _, owner_id, turn = heappop(self._undecided)
            owner = self.turns.owner(owner_id)
            for held in tuple(owner.parked.get(turn, ())):
                if not self._is_undecided(owner, turn, held):
                    owner.let_go(held)
                    self.low_water.release(held.hold)
                    result.dropped.append(held.offset)
            if turn in owner.parked:
                self._await(owner, turn, owner_id)
            self.turns.sweep(owner_id)

    def straighten(self, trace: OpenTrace, result: TakeResult) -> None:
        """The trace is due: move what was looked at too often before, if it is of another turn."""
        owner = self.turns.owner(self._owner_of[trace.trace_id])
        for held in [*owner.held[trace.trace_id]]:
            if held.looks > MOST_LOOKS and owner.resolve(held.segment) != held.turn:
                self._move(owner, held, result)
                self._end_if_over(owner, held.turn)

    def closed(self, closing: Closing, *, until: int) -> None:
        """Give a made trace that closes what its segments are and say."""
        turn = closing.trace_id
        owner_id = self._owner_of.pop(turn)
        owner = self.turns.owner(owner_id)
        facts = owner.facts(turn, owner_id, until=until)
        held = owner.take_all(turn)
        self._repeated.pop(turn, None)
        self.turns.remember(turn, facts)
        # A full trace closes within a record, which may hold more of it: read again, the record is not all of it.
        is_full = closing.reason in ("max_spans", "max_bytes")
        closing.pieces = tuple(each.piece for each in held)
        closing.times = array("d", (each.time for each in held))
        closing.offsets = array("q", (each.offset for each in held))
        closing.turn = facts
        closing.more_holds = tuple(each.hold for each in held)
        closing.last_offset -= is_full

    def _put(self, owner: Owner, held: BufferedSegment, result: TakeResult) -> bool:
        turn = owner.resolve(held.segment)
        came = Arrival(held.offset, held.time, held.service, len(held.spans))
        trace = self.traces.opened(turn) or self.traces.admit(turn, came, result)
        if trace is None:
            if self._is_undecided(owner, turn, held):
                self._park(owner, turn, held)
                return True
            self.low_water.release(held.hold)
            return False
        trace.is_made = True
        self._owner_of[turn] = held.segment.owner
        new = trace.new(held.spans)
        result.duplicates += len(held.spans) - len(new)
        if not new:
            trace.last_offset = max(trace.last_offset, held.offset)
            self.low_water.release(held.hold)
            return False
        if trace.pieces and trace.size + size_of(held.piece) > self.windows.max_bytes:
            result.closings.append(self.traces.close(trace, "max_bytes", at=held.time))
            result.duplicates -= len(held.spans) - len(new)
            return self._put(owner, held, result)
        owner.hold(turn, held)
        self._note_repeated(trace, held.spans, new)
        before = trace.cost
        trace.held += SEGMENT_COST
        self.traces.changed(trace, before)
        self.traces.add(trace, new, held.piece, came, result)
        self._end_by(owner, held)
        return True

    def _note_repeated(
        self, trace: OpenTrace, spans: Sequence[SpanHead], new: Sequence[SpanHead]
    ) -> None:
        if len(new) == len(spans):
            return
        repeated = Counter(each.span_id for each in spans)
        repeated.subtract(each.span_id for each in new)
        self._repeated.setdefault(trace.trace_id, Counter()).update(repeated)

    def _park(self, owner: Owner, turn: bytes, held: BufferedSegment) -> None:
        """Wait until every record is read that was in the log when the closed trace closed."""
        is_first = turn not in owner.parked
        owner.park(turn, held)
        if is_first:
            self._await(owner, turn, held.segment.owner)

    def _await(self, owner: Owner, turn: bytes, owner_id: bytes) -> None:
        facts = owner.closed.get(turn)
        heappush(self._undecided, (0 if facts is None else facts.until, owner_id, turn))

    def _is_undecided(self, owner: Owner, turn: bytes, held: BufferedSegment) -> bool:
        """Whether it is read again, and what will be read again yet may say that it is of another trace.

        It was put by what had been read until its trace closed: once that is read again, it is known to be in it.
        """
        facts = owner.closed.get(turn)
        return (
            held.segment.turn != turn
            and facts is not None
            and self._next < facts.until
            and self.traces.is_reread(turn, held.offset)
        )

    def _look(self, owner: Owner, held: BufferedSegment, result: TakeResult) -> set[bytes]:
        """Move a segment that is now known to be of another turn; returns the turns that are not as they were."""
        before = held.turn
        has_closed = not before
        if has_closed or not owner.look(held):
            return set()
        now = owner.resolve(held.segment)
        if held.is_parked and self.traces.is_reread(now, held.offset):
            if now != before:
                owner.let_go(held)
                self._park(owner, now, held)
            return set()
        if not held.is_parked and now == before:
            self._end_by(owner, held)
            return {now}
        self._move(owner, held, result)
        return {before, now}

    def _move(self, owner: Owner, held: BufferedSegment, result: TakeResult) -> None:
        self._take_out(owner, held)
        if not self._put(owner, held, result):
            result.dropped.append(held.offset)

    def _take_out(self, owner: Owner, held: BufferedSegment) -> None:
        turn, at, is_parked = held.turn, held.at, held.is_parked
        owner.let_go(held)
        trace = self.traces.opened(turn)
        if trace is None or is_parked:
            return
        if turn not in owner.held:
            del self._owner_of[turn]
            self._repeated.pop(turn, None)
            self.traces.drop(trace)
            return
        before = trace.cost
        trace.remove(at, self._only_there(turn, held.spans))
        trace.held -= SEGMENT_COST
        self.traces.changed(trace, before)

    def _only_there(self, turn: bytes, spans: Sequence[SpanHead]) -> list[bytes]:
        repeated = self._repeated.get(turn)
        if repeated is None:
            return [each.span_id for each in spans]
        ids = [each.span_id for each in spans if repeated[each.span_id] <= 0]
        repeated.subtract({each.span_id for each in spans}.difference(ids))
        return ids

    def _end_by(self, owner: Owner, held: BufferedSegment) -> None:
        if owner.is_end(held.segment):
            self._end(held.turn)

    def _end_if_over(self, owner: Owner, turn: bytes) -> None:
        if owner.is_over(turn):
            self._end(turn)

    def _end(self, turn: bytes) -> None:
        trace = self.traces.opened(turn)
        if trace is not None and trace.root_at is None:
            trace.end(self._time)
            self.traces.arm(trace)
