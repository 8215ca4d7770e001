"""How fast a body must come. Pure."""

from __future__ import annotations

from dataclasses import dataclass

RATE = 32 << 10
"""Bytes a second."""
PATIENCE = 5.0
"""Seconds that a body may be behind `RATE`."""


@dataclass(slots=True)
class Pace:
    """By when the next bytes of a body must come.

    What comes buys time at `RATE`, but never more than `PATIENCE` from now: a body that came fast and then stands still
    ends as soon as one that never came.
    """

    due: float
    """Seconds on the clock of `took`; a body without more bytes by then is too slow."""
    end: float
    """When the whole body must be there, however fast it comes."""

    @classmethod
    def begin(cls, now: float, *, timeout: float) -> Pace:
        """A body that begins now and may take `timeout` seconds."""
        end = now + timeout
        return cls(min(now + PATIENCE, end), end)

    def took(self, size: int, now: float) -> float:
        """So many bytes came; the new `due`."""
        self.due = min(self.due + size / RATE, now + PATIENCE, self.end)
        return self.due
