"""The mean score of the newest sessions of a window, kept up to date score by score. Pure.

The sum is an integer, in units of the smallest float: nothing is rounded, so that it depends on the set of scores
alone, and is the one that `math.fsum` gives.
"""

from bisect import bisect_left, insort
from typing import TypeAlias

Age: TypeAlias = tuple[int, str]  # as `WindowEntry.age`
_BITS = 1074  # the smallest float above 0 is 2 ** -1074
_UNITS = 1 << _BITS


class RunningMean:
    """Of the newest `limit` sessions by age, those that have a score."""

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
        """The mean; None without scores."""
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
