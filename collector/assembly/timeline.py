"""What places segments by time: prompts in their order, and the held segments that they place. Pure.

    prompts    p1 . . . . . . p2 . . . . p3 . . .
    held        a   b   c   d    e   f      g

A segment is of the last prompt that is no later than it. A new prompt therefore concerns only the segments between it
and the next one; nothing else is looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.assembly.low_water import Hold
from collector.otlp.segment import Segment
from collector.otlp.span_head import SpanHead
from collector.records.span_refs import Piece

SEGMENT_COST = 900  # bytes that a held segment takes besides its piece, rounded up


@dataclass(slots=True, kw_only=True, eq=False)
class BufferedSegment:
    segment: Segment
    spans: Sequence[SpanHead]
    piece: Piece
    offset: int
    time: float
    hold: Hold
    service: str
    turn: bytes = b""  # the trace that it is put in; empty: in none
    at: int = 0  # its place among the trace's segments, and of its piece among the trace's pieces
    is_parked: bool = False  # read again, and not known yet whether the closed trace that it seems to be of has it
    number: int = 0  # in the order in which the owner's segments came
    timeline: Timeline | None = None
    """What places it; None: its own turn does, or it was looked at too often and waits until its trace is due."""
    looks: int = 0  # how often it was looked at because more was known


_LAST = 1 << 65  # after every time that a record may have


class Timeline:
    """Prompts and held segments, each in order of time, nanoseconds.

    `key`: the session, or the trace, whose segments it places. `slack`: how much earlier than its prompt a segment may
    be.
    """

    def __init__(self, key: bytes, slack: int = 0) -> None:
        self.key = key
        self.prompts: list[tuple[int, bytes]] = []  # start and turn
        self._slack = slack
        self._held: list[tuple[int, int, BufferedSegment]] = []

    @property
    def is_empty(self) -> bool:
        return not (self.prompts or self._held)

    @property
    def held(self) -> list[BufferedSegment]:
        return [each for _, _, each in self._held]

    def add(self, held: BufferedSegment) -> None:
        insort(self._held, (held.segment.start, held.number, held))

    def remove(self, held: BufferedSegment) -> None:
        del self._held[bisect_left(self._held, (held.segment.start, held.number))]

    def last(self, start: int) -> tuple[int, bytes] | None:
        at = bisect_left(self.prompts, (start + self._slack + 1, b""))
        return self.prompts[at - 1] if at else None

    def before(self, prompt: tuple[int, bytes]) -> tuple[int, bytes] | None:
        at = bisect_left(self.prompts, prompt)
        return self.prompts[at - 1] if at else None

    def put(self, turn: bytes, start: int, known: int | None = None) -> list[BufferedSegment]:
        """A turn's prompt was at `start`, and not at `known`, which is later; returns the segments that it concerns."""
        left: Iterable[BufferedSegment] = ()
        if known is not None:
            at = self._taken_out((known, turn))
            is_passed = bisect_left(self.prompts, (start, turn)) < at
            if is_passed:  # another prompt has what was behind it
                left = self._between(known, self._start(at))
        at = bisect_left(self.prompts, (start, turn))
        self.prompts.insert(at, (start, turn))
        return [*self._between(start, self._start(at + 1)), *left]

    def take(self, turn: bytes, start: int) -> None:
        self._taken_out((start, turn))

    def until(self, start: int) -> list[BufferedSegment]:
        return self._between(-1, start)

    def _taken_out(self, prompt: tuple[int, bytes]) -> int:
        at = bisect_left(self.prompts, prompt)
        del self.prompts[at]
        return at

    def _start(self, at: int) -> int:
        return self.prompts[at][0] if at < len(self.prompts) else _LAST

    def _between(self, start: int, end: int) -> list[BufferedSegment]:
        first = bisect_left(self._held, (start - self._slack,))
        last = bisect_left(self._held, (end - self._slack,))
        return [each for _, _, each in self._held[first:last]]


SPAN_BEFORE_PROMPT = 250_000_000
"""Nanoseconds. The span around one of Claude's turns starts up to 120 ms before the record of its prompt; no call of a
model that is followed by another prompt ends within this."""


class OwnedTrace(Timeline):
    """The segments of one trace, placed by its owners' prompts: the last one, or the first where none is before them.

    Several turns own a trace where their caller had one span around them.
    """

    def __init__(self, trace_id: bytes) -> None:
        super().__init__(trace_id, SPAN_BEFORE_PROMPT)
        self._unprompted: list[bytes] = []  # owners whose prompts have not come, ascending
        self.carriers: dict[BufferedSegment, None] = {}
        """The segments that carry its id, whatever places them."""

    @property
    def has_owners(self) -> bool:
        return bool(self.prompts or self._unprompted)

    @property
    def is_empty(self) -> bool:
        return super().is_empty and not (self._unprompted or self.carriers)

    def turn_at(self, start: int) -> bytes:
        """The owner that has a segment which began at `start`; there must be one."""
        found = self.last(start) or (self.prompts[0] if self.prompts else None)
        return self._unprompted[0] if found is None else found[1]

    def own(self, turn: bytes, start: int | None) -> list[BufferedSegment]:
        """A turn owns it, whose prompt was at `start`, None: has not come; returns the segments that this concerns."""
        if not self.has_owners:
            concerned = [*self.carriers]
        elif start is None and not self.prompts and turn < self._unprompted[0]:
            concerned = self.held
        else:
            concerned = []
        if start is None:
            insort(self._unprompted, turn)
            return concerned
        return [*concerned, *self.prompted(turn, start)]

    def prompted(self, turn: bytes, start: int, known: int | None = None) -> list[BufferedSegment]:
        """The prompt of an owner has come, or was earlier than was known; returns the segments that this concerns."""
        is_first = not self.prompts
        at = bisect_left(self._unprompted, turn)
        if at < len(self._unprompted) and self._unprompted[at] == turn:
            del self._unprompted[at]
        concerned = self.put(turn, start, known)
        if is_first:
            return self.held
        if self.prompts[0][1] == turn:
            concerned += self.until(start)
        return concerned

    def disown(self, turn: bytes, start: int | None) -> None:
        """The turn does not own it; its prompt was at `start`, None: has not come."""
        if start is None:
            self._unprompted.remove(turn)
        else:
            self.take(turn, start)
