"""Open traces that are made of segments: each segment is put where it belongs, and moved when more is known.

What is decided here is decided by `Turns`; `OpenTraces` does with made traces what it does with all: due times, bounds,
marks, late spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from collector.assembly.low_water import Hold
from collector.assembly.open_trace import Closing, OpenTrace
from collector.assembly.take_result import Arrival, TakeResult
from collector.assembly.turns import SEGMENT_COST, HeldSegment, Owner, Turns
from collector.config.tree import TraceWindow
from collector.log.port import Record
from collector.otlp.segment import Segment
from collector.otlp.span_head import SpanHead
from collector.records.span_refs import Piece, size_of
from evaluators.model import Closed


class Traces(Protocol):
    """What is done with the open traces of the partition (open_traces.OpenTraces)."""

    def opened(self, trace_id: bytes) -> OpenTrace | None:
        """The open trace of that id."""
        ...

    def admit(self, trace_id: bytes, came: Arrival, result: TakeResult) -> OpenTrace | None:
        """Open or re-open a trace; None if the record is re-read or too late."""
        ...

    def is_reread(self, trace_id: bytes, offset: int) -> bool:
        """Whether a record at `offset` was read before the trace closed."""
        ...

    def add(
        self,
        trace: OpenTrace,
        new: Sequence[SpanHead],
        piece: Piece,
        at: Arrival,
        result: TakeResult,
    ) -> None:
        """Add a piece with its new spans; the trace may be full then, and closes."""
        ...

    def close(self, trace: OpenTrace, reason: Closed, *, at: float) -> Closing:
        """Close an open trace."""
        ...

    def drop(self, trace: OpenTrace) -> None:
        """It has nothing any more."""
        ...

    def changed(self, trace: OpenTrace, before: int) -> None:
        """What the trace takes has changed."""
        ...

    def arm(self, trace: OpenTrace) -> None:
        """Its deadline may be earlier than it was."""
        ...

    def hold(self, offset: int) -> Hold:
        """Claim everything from `offset` on."""
        ...

    def release(self, hold: Hold) -> None:
        """Give a claim back."""
        ...


class MadeTraces:
    """The made traces of one partition.

    Args:
        traces: All open traces of the partition.
        windows: When traces close.
        turns: What is known of turns; closed ones are remembered and forgotten with their marks.
    """

    def __init__(self, traces: Traces, windows: TraceWindow, turns: Turns) -> None:
        self._traces = traces
        self._windows = windows
        self._turns = turns
        self._owner_of: dict[bytes, bytes] = {}
        """Owner by open trace."""
        self._undecided: set[bytes] = set()
        """Owners with parked segments."""
        self._next = 0
        """The offset below which everything has been read."""

    def take(
        self,
        record: Record,
        segment: Segment,
        spans: Sequence[SpanHead],
        piece: Piece,
        service: str,
        result: TakeResult,
    ) -> bool:
        """Put a segment where it belongs; returns whether it is needed."""
        offset = record.position.offset
        self._next = offset + 1
        owner = self._turns.owner(segment.owner)
        has_news = owner.learn(segment)
        held = HeldSegment(
            segment=segment,
            spans=spans,
            piece=piece,
            offset=offset,
            time=record.time,
            hold=self._traces.hold(offset),
            service=service,
        )
        is_needed = self._put(owner, held, result)
        turns = {owner.resolve(segment)}
        if has_news:
            turns |= self._rearrange(owner, segment, result)
            turns |= {owner.before(segment) or segment.turn, segment.turn}
        for turn in turns:
            trace = self._traces.opened(turn)
            if trace is not None and trace.root_at is None and owner.is_over(turn):
                trace.end(record.time)
                self._traces.arm(trace)
        return is_needed

    def settle(self, following: int, result: TakeResult) -> None:
        """Everything below `following` has been read: drop what closed traces are now known to have."""
        self._next = max(self._next, following)
        for owner_id in tuple(self._undecided):
            owner = self._turns.owner(owner_id)
            for held in tuple(owner.parked):
                if not self._is_undecided(owner, owner.resolve(held.segment), held):
                    owner.parked.remove(held)
                    self._drop(held, result)
            if not owner.parked:
                self._undecided.discard(owner_id)
                self._turns.sweep(owner_id)

    def closed(self, closing: Closing, *, until: int) -> Closing:
        """The closing of a made trace, with what stays known of it and all that it holds."""
        turn = closing.trace_id
        owner_id = self._owner_of.pop(turn)
        owner = self._turns.owner(owner_id)
        facts = owner.facts(turn, owner_id, until=until)
        held = owner.keep(turn)
        self._turns.remember(turn, facts)
        # A full trace closes within a record, which may hold more of it: read again, the record is not all of it.
        is_full = closing.reason in ("max_spans", "max_bytes")
        return replace(
            closing,
            turn=facts,
            more_holds=tuple(each.hold for each in held),
            last_offset=closing.last_offset - is_full,
        )

    # --- one segment ---------------------------------------------------------------------------------------------

    def _put(self, owner: Owner, held: HeldSegment, result: TakeResult) -> bool:
        turn = owner.resolve(held.segment)
        came = Arrival(held.offset, held.time, held.service, len(held.spans))
        trace = self._traces.opened(turn) or self._traces.admit(turn, came, result)
        if trace is None:
            if self._is_undecided(owner, turn, held):
                owner.parked.append(held)
                self._undecided.add(held.segment.owner)
                return True
            self._traces.release(held.hold)
            return False
        trace.is_made = True
        self._owner_of[turn] = held.segment.owner
        new = trace.new(held.spans)
        result.duplicates += len(held.spans) - len(new)
        if not new:
            trace.last_offset = max(trace.last_offset, held.offset)
            self._traces.release(held.hold)
            return False
        if trace.pieces and trace.size + size_of(held.piece) > self._windows.max_bytes:
            result.closings.append(self._traces.close(trace, "max_bytes", at=held.time))
            result.duplicates -= len(held.spans) - len(new)
            return self._put(owner, held, result)
        owner.hold(turn, held)
        before = trace.cost
        trace.held += SEGMENT_COST
        self._traces.changed(trace, before)
        self._traces.add(trace, new, held.piece, came, result)
        return True

    def _is_undecided(self, owner: Owner, turn: bytes, held: HeldSegment) -> bool:
        """Whether it is read again, and what will be read again yet may say that it is of another trace.

        It was put by what had been read until its trace closed: once that is read again, it is known to be in it.
        """
        facts = owner.closed.get(turn)
        return (
            held.segment.turn != turn
            and facts is not None
            and self._next < facts.until
            and self._traces.is_reread(turn, held.offset)
        )

    def _drop(self, held: HeldSegment, result: TakeResult) -> None:
        self._traces.release(held.hold)
        result.dropped.append(held.offset)

    # --- when more is known --------------------------------------------------------------------------------------

    def _rearrange(self, owner: Owner, news: Segment, result: TakeResult) -> set[bytes]:
        """Move what is now known to be of another turn; returns the turns that are not as they were."""
        moved: dict[bytes, list[HeldSegment]] = {}
        turns: set[bytes] = set()
        for turn, held in owner.affected(news):
            now = owner.resolve(held.segment)
            turns |= {turn, now}
            if now != turn:
                moved.setdefault(turn, []).append(held)
        self._take_out(owner, moved)
        decided = [
            held
            for held in owner.parked
            if not self._traces.is_reread(owner.resolve(held.segment), held.offset)
        ]
        owner.parked = [each for each in owner.parked if each not in decided]
        anew = [*decided, *(held for several in moved.values() for held in several)]
        for held in sorted(anew, key=lambda each: each.offset):
            if not self._put(owner, held, result):
                result.dropped.append(held.offset)
        return turns.union(owner.resolve(each.segment) for each in decided)

    def _take_out(self, owner: Owner, moved: Mapping[bytes, Sequence[HeldSegment]]) -> None:
        for turn, several in moved.items():
            trace = self._traces.opened(turn)
            if trace is None:
                continue
            gone = set(map(id, several))
            stay = [each for each in owner.held[turn] if id(each) not in gone]
            owner.keep(turn, stay)
            if stay:
                self._fill(trace, stay)
            else:
                del self._owner_of[turn]
                self._traces.drop(trace)

    def _fill(self, trace: OpenTrace, segments: Iterable[HeldSegment]) -> None:
        before = trace.cost
        trace.begin_again()
        for each in segments:
            trace.add(trace.new(each.spans), each.piece, offset=each.offset, time=each.time)
            trace.held += SEGMENT_COST
        self._traces.changed(trace, before)
