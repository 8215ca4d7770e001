"""The sessions behind a gauge: the newest so many, each with its latest score. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from collector.records.windows import WindowEntry
from evaluators.formulas.confidence_interval import ConfidenceInterval, bounds

MIN_COVERAGE = 0.5
"""Sessions with fewer of their expected scores are left out of windows."""


class Stats(NamedTuple):
    """The values of one label set's gauges."""

    bounds: ConfidenceInterval
    samples: int


class Window:
    """The newest `sessions` sessions. The state depends on the set of entries offered, never on their order."""

    def __init__(
        self, *, sessions: int, max_age: float, entries: Iterable[WindowEntry] = ()
    ) -> None:
        """Hold at most `sessions`; `max_age` is in seconds of log time."""
        self._limit = sessions
        self._max_age = max_age
        self._entries: dict[str, WindowEntry] = {}
        for entry in entries:
            self.offer(entry)

    def offer(self, entry: WindowEntry) -> bool:
        """Take in a score; False if it is a repeat or older than the score that is held."""
        held = self._entries.get(entry.session)
        if held is not None:
            if entry.rank <= held.rank:
                return False
        elif len(self._entries) >= self._limit:
            oldest = min(self._entries.values(), key=lambda each: each.age)
            if entry.age <= oldest.age:
                return False
            del self._entries[oldest.session]
        self._entries[entry.session] = entry
        return True

    def expire(self, now: float) -> bool:
        """Forget sessions that had no trace within the window's age; whether there were any."""
        expired = [
            each.session for each in self._entries.values() if each.time < now - self._max_age
        ]
        for session in expired:
            del self._entries[session]
        return bool(expired)

    def stats(self, now: float) -> Stats | None:
        """Over the sessions that count now; None if there are none: an unknown value is not shown."""
        scores = [
            each.score
            for each in self._entries.values()
            if each.covered and each.time >= now - self._max_age
        ]
        # Sorted, so that the sum is the same to the last bit whatever the order of arrival.
        interval = bounds(sorted(scores))
        return None if interval is None else Stats(interval, len(scores))

    @property
    def newest(self) -> float:
        """Log time of its newest session; 0 when there is none."""
        return max((each.time for each in self._entries.values()), default=0.0)

    @property
    def entries(self) -> tuple[WindowEntry, ...]:
        """The entries, oldest first."""
        return tuple(sorted(self._entries.values(), key=lambda each: each.age))
