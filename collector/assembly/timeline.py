"""What places segments by time: prompts in their order, and the held segments that they place. Pure.

    prompts    p1 . . . . . . p2 . . . . p3 . . .
    held        a   b   c   d    e   f      g

A segment is of the last prompt that is no later than it. A new prompt therefore concerns only the segments between it
and the next one; nothing else is looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.assembly.held_segment import HeldSegment

_LAST = 1 << 65
"""After every time that a record may have."""


class Timeline:
    """Prompts and held segments, each in order of time, nanoseconds.

    Args:
        key: The session, or the trace, whose segments it places.
        slack: How much earlier than its prompt a segment may be.
    """

    def __init__(self, key: bytes, slack: int = 0) -> None:
        self.key = key
        self.prompts: list[tuple[int, bytes]] = []
        """Start and turn."""
        self._slack = slack
        self._held: list[tuple[int, int, HeldSegment]] = []

    @property
    def is_empty(self) -> bool:
        """Whether it places nothing, and has nothing to place by."""
        return not (self.prompts or self._held)

    @property
    def held(self) -> list[HeldSegment]:
        return [each for _, _, each in self._held]

    def add(self, held: HeldSegment) -> None:
        """It places this segment from now on."""
        insort(self._held, (held.segment.start, held.number, held))

    def remove(self, held: HeldSegment) -> None:
        """It does not place this segment any more."""
        del self._held[bisect_left(self._held, (held.segment.start, held.number))]

    def last(self, start: int) -> tuple[int, bytes] | None:
        at = bisect_left(self.prompts, (start + self._slack + 1, b""))
        return self.prompts[at - 1] if at else None

    def before(self, prompt: tuple[int, bytes]) -> tuple[int, bytes] | None:
        at = bisect_left(self.prompts, prompt)
        return self.prompts[at - 1] if at else None

    def put(self, turn: bytes, start: int, known: int | None = None) -> list[HeldSegment]:
        """A turn's prompt was at `start`, and not at `known`, which is later; returns the segments that it concerns."""
        left: Iterable[HeldSegment] = ()
        if known is not None:
            at = self._taken_out((known, turn))
            is_passed = bisect_left(self.prompts, (start, turn)) < at
            if is_passed:  # another prompt has what was behind it
                left = self._between(known, self._start(at))
        at = bisect_left(self.prompts, (start, turn))
        self.prompts.insert(at, (start, turn))
        return [*self._between(start, self._start(at + 1)), *left]

    def take(self, turn: bytes, start: int) -> None:
        """The prompt is not known any more."""
        self._taken_out((start, turn))

    def until(self, start: int) -> list[HeldSegment]:
        return self._between(-1, start)

    def _taken_out(self, prompt: tuple[int, bytes]) -> int:
        at = bisect_left(self.prompts, prompt)
        del self.prompts[at]
        return at

    def _start(self, at: int) -> int:
        return self.prompts[at][0] if at < len(self.prompts) else _LAST

    def _between(self, start: int, end: int) -> list[HeldSegment]:
        first = bisect_left(self._held, (start - self._slack,))
        last = bisect_left(self._held, (end - self._slack,))
        return [each for _, _, each in self._held[first:last]]
