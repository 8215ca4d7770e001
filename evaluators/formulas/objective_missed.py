"""A sequential test for a drop below the objective, with a bound on false alarms.

An e-detector (Shin, Ramdas, Rinaldo): whatever the distribution of the scores, the mean run to a false alarm is at
least 28,800 scores while the true mean is not below the objective; at 40 scores an hour, one a month. Pure.
"""

from functools import lru_cache

import msgspec

ALARM = 28_800.0

BETS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)
"""Shares of the largest allowed bet 1 / (1 - objective): small ones find small drops, large ones find them fast."""


@lru_cache(maxsize=64)
def _bets(objective: float) -> tuple[float, ...]:
    return tuple(bet / (1 - objective) for bet in BETS)


class Detector(msgspec.Struct, kw_only=True):
    wealth: list[float] = msgspec.field(default_factory=lambda: [1.0] * len(BETS))
    """Of each bet against the claim that the mean is not below the objective."""
    alarmed: bool = False  # from the alarm until the mean is back above the objective

    def feed(self, score: float, objective: float) -> None:
        if self.alarmed:
            return
        room = objective - score
        self.wealth = [
            max(wealth, 1.0) * (1 + bet * room)
            for wealth, bet in zip(self.wealth, _bets(objective), strict=True)
        ]
        self.alarmed = sum(self.wealth) / len(BETS) >= ALARM

    def settle(self, mean: float | None, objective: float) -> None:
        """End an alarm once the window's mean is above the objective, and start the test again."""
        if self.alarmed and mean is not None and mean > objective:
            self.alarmed = False
            self.wealth = [1.0] * len(BETS)
