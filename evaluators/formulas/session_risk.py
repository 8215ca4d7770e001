"""Risk of a session, kept up to date turn by turn: its tail and its root mean square (PandaProbe)."""

import math
from bisect import bisect_left, insort
from collections.abc import Mapping

from evaluators.formulas.signals import UNIT, SignalState
from evaluators.model import JSON

TOP_SHARE = 0.15  # part of a session's steps, the riskiest, whose mean is its risk (PandaProbe)
MAX_WEIGHT = 0.1  # what the one riskiest step weighs beside that mean (PandaProbe)


def top_count(n: int) -> int:
    """How many of n turns form the tail: ceil(0.15 n), at least one, computed without float error."""
    return max(1, -(-n * 15 // 100))


class TailRisk(SignalState):
    """Of agent_reliability: the mean of the worst 15 % of turns, and the worst one.

    A turn's risk is the greatest weighted risk of its signals. The tail's sum is kept as an integer, so a session
    rebuilt in any order gives the same bits.
    """

    def __init__(self, options: Mapping[str, JSON]) -> None:
        super().__init__(options)
        self._risks: list[int] = []  # ascending: the tail is its end
        self._tail = 0

    def value(self, risk: Mapping[str, float]) -> float | None:
        """The greatest weighted risk; None without a signal."""
        return max((self.weights[name] * risk[name] for name in risk), default=None)

    def add(self, value: int) -> None:
        """Count a turn's risk in: O(log n) comparisons."""
        risks, k = self._risks, self._k
        if k and value > risks[-k]:
            self._tail += value - risks[-k]
        insort(risks, value)
        if (now := self._k) > k:
            self._tail += risks[-now]

    def remove(self, value: int) -> None:
        """Take a turn's risk out: O(log n) comparisons."""
        risks, k = self._risks, self._k
        in_tail = value >= risks[-k]
        del risks[bisect_left(risks, value)]
        if in_tail:
            self._tail -= value
            if self._k == k:
                self._tail += risks[-k]
        elif self._k < k:
            self._tail -= risks[-k]

    @property
    def _k(self) -> int:
        return top_count(len(self._risks)) if self._risks else 0

    @property
    def evaluated(self) -> int:
        return len(self._risks)

    @property
    def mean_top_k(self) -> float:
        return self._tail / (self._k * UNIT) if self._risks else 0.0

    @property
    def max_risk(self) -> float:
        return self._risks[-1] / UNIT if self._risks else 0.0

    @property
    def raw_risk(self) -> float:
        """The session's risk: nine tenths of the tail, one tenth of the worst turn."""
        return (1 - MAX_WEIGHT) * self.mean_top_k + MAX_WEIGHT * self.max_risk


def penalty(risk: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return sum(weights[name] * risk[name] for name in risk if name != "confidence")


def weighted_uncertainty(risk: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Weighted risk of confidence, amplified; may exceed 1. `risk` must hold confidence."""
    return (1.0 + penalty(risk, weights)) * (weights["confidence"] * risk["confidence"])


class RootMeanSquare(SignalState):
    """Of agent_consistency: root mean square of the turns' weighted uncertainty.

    The sum of squares is an integer, so it does not depend on the order of turns.
    """

    def __init__(self, options: Mapping[str, JSON]) -> None:
        super().__init__(options)
        self._squares = 0
        self._count_evaluated = 0

    def value(self, risk: Mapping[str, float]) -> float | None:
        """The square of the turn's weighted uncertainty; None without confidence."""
        if "confidence" not in risk:
            return None
        return weighted_uncertainty(risk, self.weights) ** 2

    def add(self, value: int) -> None:
        self._squares += value
        self._count_evaluated += 1

    def remove(self, value: int) -> None:
        self._squares -= value
        self._count_evaluated -= 1

    @property
    def evaluated(self) -> int:
        return self._count_evaluated

    @property
    def rms(self) -> float:
        if not self._count_evaluated:
            return 0.0
        return math.sqrt(self._squares / (self._count_evaluated * UNIT))
