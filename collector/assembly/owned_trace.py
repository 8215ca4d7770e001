"""A trace of which everything is of the turns that own it. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort

from collector.assembly.held_segment import HeldSegment
from collector.assembly.timeline import Timeline

SPAN_BEFORE_PROMPT = 250_000_000
"""Nanoseconds. The span around one of Claude's turns starts up to 120 ms before the record of its prompt; no call of a
model that is followed by another prompt ends within this."""


class OwnedTrace(Timeline):
    """The segments of one trace, placed by its owners' prompts: the last one, or the first where none is before them.

    Several turns own a trace where their caller had one span around them.
    """

    def __init__(self, trace_id: bytes) -> None:
        super().__init__(trace_id, SPAN_BEFORE_PROMPT)
        self._unprompted: list[bytes] = []
        """Owners whose prompts have not come, ascending."""
        self.carriers: dict[HeldSegment, None] = {}
        """The segments that carry its id, whatever places them."""

    @property
    def has_owners(self) -> bool:
        return bool(self.prompts or self._unprompted)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of it any more."""
        return super().is_empty and not (self._unprompted or self.carriers)

    def turn_at(self, start: int) -> bytes:
        """The owner that has a segment which began at `start`; there must be one."""
        found = self.last(start) or (self.prompts[0] if self.prompts else None)
        return self._unprompted[0] if found is None else found[1]

    def own(self, turn: bytes, start: int | None) -> list[HeldSegment]:
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

    def prompted(self, turn: bytes, start: int, known: int | None = None) -> list[HeldSegment]:
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
