"""Instability of a session as a root mean square, kept up to date (PandaProbe agent_consistency)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evaluators.formulas.signals import UNIT, SignalState
from evaluators.model import JSON


def penalty(risk: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """How much the other signals amplify the risk of confidence."""
    return sum(weights[name] * risk[name] for name in risk if name != "confidence")


def weighted_uncertainty(risk: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Weighted risk of confidence, amplified; may exceed 1. `risk` must hold confidence."""
    return (1.0 + penalty(risk, weights)) * (weights["confidence"] * risk["confidence"])


class RootMeanSquare(SignalState):
    """Root mean square of the turns' weighted uncertainty; the sum of squares is an integer, free of order."""

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
        """Count a turn's square in."""
        self._squares += value
        self._count_evaluated += 1

    def remove(self, value: int) -> None:
        """Take a turn's square out."""
        self._squares -= value
        self._count_evaluated -= 1

    @property
    def evaluated(self) -> int:
        """How many turns had confidence."""
        return self._count_evaluated

    @property
    def rms(self) -> float:
        """The session's instability."""
        if not self._count_evaluated:
            return 0.0
        return math.sqrt(self._squares / (self._count_evaluated * UNIT))
