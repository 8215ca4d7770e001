"""The time that charts show: a named length that ends now, cut into equal parts. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collector.api.viewer_zone import shown_at

LENGTHS: Mapping[str, float] = {
    "15m": 900,
    "1h": 3_600,
    "3h": 3 * 3_600,
    "12h": 12 * 3_600,
    "24h": 86_400,
    "7d": 7 * 86_400,
    "30d": 30 * 86_400,
}
"""Seconds by the name that is in addresses."""
USUAL = LENGTHS["24h"]
"""The most that is shown unless something longer ago is asked for, or matters."""
_STEPS = (60, 180, 300, 900, 1_800, 3_600, 3 * 3_600, 6 * 3_600, 86_400, 7 * 86_400)
_MOST_TICKS = 6
"""Labels below a chart that do not touch each other on a narrow screen; `_STEPS` are seconds between two."""


@dataclass(frozen=True, slots=True)
class Tick:
    at: float  # where it is, 0 to 1
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timespan:
    """From `first` to `last`, Unix seconds, in `parts`."""

    name: str
    first: float
    last: float
    parts: int

    @property
    def edges(self) -> list[float]:
        length = (self.last - self.first) / self.parts
        return [*(self.first + length * at for at in range(self.parts)), self.last]

    def place(self, time: float) -> float | None:
        """Where a moment is, 0 to 1; None: outside."""
        place = (time - self.first) / (self.last - self.first)
        return place if 0 <= place <= 1 else None

    def clock(self, time: float) -> str:
        """The moment as this span needs it: with seconds, with the day, or neither."""
        length = self.last - self.first
        form = "%H:%M:%S" if length < 1_800 else "%H:%M" if length <= USUAL else "%b %d %H:%M"
        return shown_at(time, form)

    @property
    def ticks(self) -> list[Tick]:
        length = self.last - self.first
        step = next((each for each in _STEPS if length / each <= _MOST_TICKS), _STEPS[-1])
        form = "%b %d" if step >= USUAL else "%H:%M"
        first = math.ceil(self.first / step)
        times = [step * number for number in range(first, math.floor(self.last / step) + 1)]
        return [Tick((time - self.first) / length, shown_at(time, form)) for time in times]


def timespan(
    asked: str | None, *, now: float, seen: Iterable[float], since: float | None, parts: int
) -> Timespan:
    """The length that is asked for; else one that fits what there is to see.

    Args:
        asked: A name of `LENGTHS`; any other counts as none.
        now: Unix seconds.
        seen: Moments of the oldest and the newest thing in the index.
        since: When what matters most began.
        parts: Of equal length.
    """
    name = _fitting(now, sorted(seen), since) if asked is None or asked not in LENGTHS else asked
    part = LENGTHS[name] / parts
    last = part * math.ceil(
        now / part
    )  # parts begin at round moments, so that a point stays as it is
    return Timespan(name=name, first=last - LENGTHS[name], last=last, parts=parts)


def _fitting(now: float, seen: list[float], since: float | None) -> str:
    """The shortest that shows everything; beyond `USUAL` only as long as the newest, or what matters, asks for."""
    if not seen:
        return "1h"
    wanted = min(now - seen[0], max(USUAL, 1.5 * (now - seen[-1])))
    if since is not None:
        wanted = max(wanted, 1.5 * (now - since))
    return next((name for name, length in LENGTHS.items() if length >= wanted), "30d")
