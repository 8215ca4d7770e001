"""The newest sessions of one label set, each with its latest score. Pure: time is an argument."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from heapq import nlargest
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from collector.records.windows import WindowEntry
from evaluators.formulas.distribution import ConfidenceInterval, weighted_bounds

MOST_WAITING = 256  # sessions whose latest score waits
Age = tuple[int, str]  # as `WindowEntry.age`
_BITS = 1074  # the smallest float above 0 is 2 ** -1074
_UNITS = 1 << _BITS


class Stats(NamedTuple):
    """The values of one label set's gauges."""

    bounds: ConfidenceInterval
    samples: int


class Window:
    """The newest `sessions` sessions. The state depends on the set of entries offered, never on their order.

    So what is offered waits, the latest entry of each session, until something is asked for.
    """

    def __init__(
        self,
        *,
        sessions: int,
        max_age: float,
        entries: Iterable[WindowEntry] = (),
        spare: int = 0,
    ) -> None:
        """`max_age` is in seconds of log time.

        So many `spare` sessions are held as well: they count when newer ones go over to another agent or version. A
        session that went keeps its place among all, or what is evicted would depend on when it went.
        """
        self._limit = sessions
        self._most = sessions + spare
        self._max_age = max_age
        self._waiting: dict[str, WindowEntry] = {}
        self._held: dict[str, WindowEntry] = {}
        self._ages: list[Age] = []  # of what is held, sorted
        self._since = inf  # no entry is older than this log time
        self._is_weighted = False  # whether an entry counts otherwise than once
        self._mean: RunningMean | None = None
        """Of the entries that are not gone; None until the mean is asked for."""
        for entry in entries:
            self.offer(entry)

    def __len__(self) -> int:
        self._settle()
        return len(self._held)

    def offer(self, entry: WindowEntry) -> None:
        """Take in a score; one that is a repeat or older than the session's latest changes nothing."""
        earlier = self._waiting.get(entry.session)
        if earlier is None:
            if len(self._waiting) >= MOST_WAITING:
                self._settle()
        elif entry.rank <= earlier.rank:
            return
        self._waiting[entry.session] = entry

    def get(self, session: str) -> WindowEntry | None:
        self._settle()
        return self._held.get(session)

    def mark_gone(self, entry: WindowEntry) -> None:
        if self._mean is not None and not entry.gone:
            self._mean.drop(entry.age)
        self._held[entry.session] = replace(entry, gone=True)

    def expire(self, now: float) -> bool:
        """Forget sessions that had no trace within the window's age; whether there were any."""
        self._settle()
        since = now - self._max_age
        if self._since >= since:
            return False
        expired = [each for each in self._held.values() if each.time < since]
        for entry in expired:
            self._remove(entry)
        self._since = min((each.time for each in self._held.values()), default=inf)
        return bool(expired)

    def stats(
        self, now: float, current: frozenset[str] | None = None, since: float = 0.0
    ) -> Stats | None:
        """Over the sessions that count now; None if there are none: an unknown value is not shown.

        `current` are the versions of the agent whose sessions count; None: all. Of sessions whose newest span came
        before log time `since` none counts.
        """
        counting = self.counting(now, current)
        counted = [each for each in counting if each.covered and each.time >= since]
        # It sorts them, so that the sum is the same to the last bit whatever the order of arrival.
        interval = weighted_bounds((each.score, each.weight) for each in counted)
        return None if interval is None else Stats(interval, len(counted))

    def mean(self, now: float) -> float | None:
        """The mean of `stats` for all versions, without a walk over the window while no session is too old."""
        self._settle()
        if self._is_weighted or self._since < now - self._max_age:
            stats = self.stats(now)
            return stats and stats.bounds.mean
        if self._mean is None:
            self._mean = RunningMean(self._limit)
            for each in self._held.values():
                if not each.gone:
                    self._mean.put(each.age, each.score if each.covered else None)
        return self._mean.value

    def counting(self, now: float, current: frozenset[str] | None = None) -> list[WindowEntry]:
        self._settle()
        here = [each for each in self._held.values() if not each.gone]
        if current is not None:
            here = [each for each in here if each.version is None or each.version in current]
        if len(here) > self._limit:
            here = nlargest(self._limit, here, key=lambda each: each.age)
        return [each for each in here if each.time >= now - self._max_age]

    @property
    def newest(self) -> float:
        """Log time of its newest session that counts; 0 when there is none."""
        self._settle()
        return max((each.time for each in self._held.values() if not each.gone), default=0.0)

    @property
    def entries(self) -> tuple[WindowEntry, ...]:
        self._settle()
        return tuple(self._held[session] for _started, session in self._ages)

    def _settle(self) -> None:
        """Let what waits in: each session once."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for entry in waiting.values():
                self._put(entry)

    def _put(self, entry: WindowEntry) -> None:
        held, age = self._held.get(entry.session), entry.age
        if held is not None:
            if entry.rank <= held.rank:
                return
            self._remove(held)
        elif len(self._held) >= self._most:
            oldest = self._ages[0]
            if age <= oldest:
                return
            self._remove(self._held[oldest[1]])
        self._held[entry.session] = entry
        self._is_weighted = self._is_weighted or entry.weight != 1.0
        insort(self._ages, age)
        self._since = min(self._since, entry.time)
        if self._mean is not None and not entry.gone:
            self._mean.put(age, entry.score if entry.covered else None)

    def _remove(self, entry: WindowEntry) -> None:
        age = entry.age
        del self._held[entry.session]
        del self._ages[bisect_left(self._ages, age)]
        if self._mean is not None and not entry.gone:
            self._mean.drop(age)


class RunningMean:
    """The mean score of the newest `limit` sessions by age, of those that have one, kept up to date score by score.

    The sum is an integer, in units of the smallest float: nothing is rounded, so that it depends on the set of scores
    alone, and is the one that `math.fsum` gives.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ages: list[Age] = []
        self._scores: dict[Age, float | None] = {}
        self._sum = 0
        self._count = 0

    def put(self, age: Age, score: float | None) -> None:
        """Take in a session; None: too little of it is seen for a score, and it only takes its place."""
        ages = self._ages
        insort(ages, age)
        self._scores[age] = score
        older = len(ages) - self._limit
        if older <= 0:
            self._add(age)
        elif age >= ages[older]:
            self._add(age)
            self._subtract(ages[older - 1])

    def drop(self, age: Age) -> None:
        ages = self._ages
        index, older = bisect_left(ages, age), len(ages) - self._limit
        del ages[index]
        if index >= older:
            self._subtract(age)
            if older > 0:
                self._add(ages[older - 1])
        del self._scores[age]

    @property
    def value(self) -> float | None:
        return self._sum / _UNITS / self._count if self._count else None

    def _add(self, age: Age) -> None:
        if (score := self._scores[age]) is not None:
            self._sum += _exact(score)
            self._count += 1

    def _subtract(self, age: Age) -> None:
        if (score := self._scores[age]) is not None:
            self._sum -= _exact(score)
            self._count -= 1


def _exact(score: float) -> int:
    numerator, denominator = score.as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())
