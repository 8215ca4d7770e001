"""How long calls of one tool usually take: a histogram whose size does not grow with the calls. Pure."""

from collections.abc import Iterable, Mapping
from math import ceil, floor, log2

LEAST = 20  # calls below which nothing is called slow
MOST = 2000  # calls at which all counts are halved, so that the histogram follows slow changes
MOST_WAITING = 256  # calls that may wait; the newest
STEPS = 8  # buckets for each doubling: a bound is exact to 9 %
_SHORTEST = 0.001  # seconds; shorter calls count as this long
_LONGEST = 1e7  # seconds, about four months; longer calls count as this long


class Durations:
    def __init__(
        self, counts: Mapping[int, int] | None = None, waiting: Iterable[float] = ()
    ) -> None:
        self.counts = dict(counts or {})  # calls by number of the bucket
        self.waiting = list(waiting)
        """Calls that are not counted yet, at most MOST_WAITING: they may be what is to be noticed."""
        self._total = sum(self.counts.values())

    def is_slow(self, seconds: float) -> bool | None:
        """Whether a call takes longer than twice the median and than 98 % of earlier ones; None: they are too few."""
        if self._total < LEAST:
            return None
        return self._are_shorter(0.98, seconds) and self._are_shorter(0.5, seconds / 2)

    def wait(self, seconds: float) -> None:
        """One more call, to be counted by `learn`, or left out by `skip`."""
        self.waiting = [*self.waiting, seconds][-MOST_WAITING:]

    def skip(self) -> None:
        """What waits is never counted."""
        self.waiting = []

    def learn(self) -> None:
        for seconds in self.waiting:
            self._add(seconds)
        self.waiting = []

    def _add(self, seconds: float) -> None:
        bucket = floor(STEPS * log2(min(max(seconds, _SHORTEST), _LONGEST)))
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self._total += 1
        if self._total >= MOST:
            self.counts = {each: count // 2 for each, count in self.counts.items() if count > 1}
            self._total = sum(self.counts.values())

    def _are_shorter(self, share: float, seconds: float) -> bool:
        """Whether that share of the calls is in buckets that end below this time: the quantile is less than it."""
        if seconds <= 0:
            return False
        end = STEPS * log2(seconds) - 1
        shorter = sum([count for bucket, count in self.counts.items() if bucket < end])
        return shorter >= ceil(share * self._total)
