"""What the process's own families say now, and said lately: what Prometheus would know of them. Pure."""

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]
INCREASE = 1800.0
"""Seconds over which the growth of counters is asked for."""
GAP = 300.0  # seconds for which a gauge that is gone keeps its last value, where a rule reads it with `last_over_time`


class SeriesSample(NamedTuple):
    family: str
    labels: Mapping[str, str]
    value: float


class Growth(NamedTuple):
    """The growth of a counter's series of which each label has one of the values, summed by other labels."""

    family: str
    by: tuple[str, ...]
    match: tuple[tuple[str, str], ...] = ()
    """Label and values, as `pass|fail`."""

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(name, "") in values.split("|") for name, values in self.match)


class Series:
    """Bounded by the families that are taken: a value for each of their series, a sum for each growth and look."""

    def __init__(self, growths: Iterable[Growth]) -> None:
        self._growths: dict[str, list[Growth]] = {}
        for each in growths:
            self._growths.setdefault(each.family, []).append(each)
        self._gauges: dict[str, dict[Labels, tuple[float, float]]] = {}
        self._counters: dict[tuple[str, Labels], float] = {}
        self._grown: dict[tuple[Growth, tuple[str, ...]], deque[tuple[float, float]]] = {}
        self.now = -math.inf  # when it was looked last

    def take(self, samples: Iterable[SeriesSample], now: float) -> None:
        """Take in all series as they are at log time `now`. A value that is not a number is left out."""
        is_first, self.now = math.isinf(self.now), now
        for each in samples:
            if math.isnan(each.value):
                continue
            labels = tuple(sorted(each.labels.items()))
            if each.family in self._growths:
                self._grow(each, labels, is_first=is_first)
            else:
                self._gauges.setdefault(each.family, {})[labels] = (now, each.value)
        self._forget()

    def largest(
        self, family: str, by: tuple[str, ...], match: Mapping[str, str], *, within: float = 0.0
    ) -> dict[tuple[str, ...], float]:
        """The largest value of each group of a gauge's series that have the labels `match`.

        `within`: seconds for which a series that is gone counts.
        """
        found: dict[tuple[str, ...], float] = {}
        for labels, (time, value) in self._gauges.get(family, {}).items():
            if time < self.now - within:
                continue
            own = dict(labels)
            if all(own.get(name, "") == wanted for name, wanted in match.items()):
                group = tuple(own.get(name, "") for name in by)
                found[group] = max(value, found.get(group, value))
        return found

    def grown(self, growth: Growth) -> dict[tuple[str, ...], float]:
        """By group, what a counter grew by in the last half hour; groups that did not grow are left out."""
        return {
            group: sum(amount for _, amount in amounts)
            for (of, group), amounts in self._grown.items()
            if of == growth
        }

    def _grow(self, sample: SeriesSample, labels: Labels, *, is_first: bool) -> None:
        key = (sample.family, labels)
        before = self._counters.get(key, sample.value if is_first else 0.0)
        self._counters[key] = sample.value
        amount = sample.value - before if sample.value >= before else sample.value  # a reset
        if amount <= 0:
            return
        for growth in self._growths[sample.family]:
            if growth.takes(sample.labels):
                group = tuple(sample.labels.get(name, "") for name in growth.by)
                self._grown.setdefault((growth, group), deque()).append((self.now, amount))

    def _forget(self) -> None:
        for series in self._gauges.values():
            for labels in [key for key, (time, _) in series.items() if time < self.now - GAP]:
                del series[labels]
        for key, amounts in [*self._grown.items()]:
            while amounts and amounts[0][0] <= self.now - INCREASE:
                amounts.popleft()
            if not amounts:
                del self._grown[key]
