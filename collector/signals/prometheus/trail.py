"""How near an alarm a label set has been over time: a few points, dense for lately, sparse for long ago. Pure."""

from __future__ import annotations

from collections.abc import Iterable

MOST = 64
"""Points: at most 600 bytes in the stored state."""
AGE = 30 * 86_400
"""Seconds of log time that are remembered."""
STEPS = 1_000
"""Progress is kept in steps of 1 / STEPS."""


class Trail:
    """Points (log time in whole seconds, progress in steps), oldest first; each is the most since the one before."""

    def __init__(self, points: Iterable[tuple[int, int]] = ()) -> None:
        """As they were stored."""
        self._points = [*points]

    def note(self, time: float, progress: float) -> None:
        """A score has entered at this log time, which is never before an earlier one's."""
        points = self._points
        at, step = int(time), round(STEPS * progress)
        if points and points[-1][0] >= at:
            points[-1] = (points[-1][0], max(step, points[-1][1]))
            return
        points.append((at, step))
        while points[0][0] < at - AGE:
            del points[0]
        if len(points) > MOST:
            self._merge_one()

    @property
    def packed(self) -> tuple[tuple[int, int], ...]:
        """The points, for the state and for what shows them."""
        return tuple(self._points)

    def _merge_one(self) -> None:
        """Two neighbours become one where that is least beside their age: an hour counts less a week ago than today."""
        points, now = self._points, self._points[-1][0] + 1
        spans = [
            (points[at + 1][0] - points[at - 1][0]) / (now - points[at - 1][0])
            for at in range(1, len(points) - 1)
        ]
        at = 1 + spans.index(min(spans))
        points[at : at + 2] = [(points[at + 1][0], max(points[at][1], points[at + 1][1]))]
