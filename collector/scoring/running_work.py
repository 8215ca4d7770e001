"""The work and the writes of a session's window, kept up to date turn by turn. Pure.

They depend on the set of turns, never on the order in which turns come, are revised and leave.
"""

from __future__ import annotations

from collections import Counter

from collector.records.sessions import SessionTurn
from evaluators.formulas.agreement import sample
from evaluators.model import Turn
from evaluators.work import Work

WRITE_COST = 150
"""Bytes of one write of a turn, here and in its state."""


class RunningWork:
    """The sums over the turns that were added and not removed."""

    __slots__ = ("_made", "total", "with_text")

    def __init__(self) -> None:
        self.total = Work()
        self.with_text = 0
        """Turns whose spans carry content."""
        self._made: Counter[int] = Counter()

    @property
    def writes(self) -> tuple[int, ...]:
        """Digests of what the turns changed, sorted."""
        return sample(self._made)

    def add(self, entry: SessionTurn) -> None:
        self._count(entry.turn, 1)

    def remove(self, entry: SessionTurn) -> None:
        self._count(entry.turn, -1)

    def _count(self, turn: Turn, sign: int) -> None:
        self.total = self.total.plus(turn.work, sign)
        self.with_text += sign * turn.has_text
        for made in turn.writes:
            self._made[made] += sign
            if not self._made[made]:
                del self._made[made]
