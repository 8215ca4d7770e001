"""Fault watches of many histories at once: the rule of `FaultWatch`, with arrays in place of numbers.

A month of a thousand histories takes seconds. `tests/property/test_simulated_faults.py` holds it against the watch
itself. Each session is one use, so that no use is a session's second.
"""

import numpy as np
from numpy.typing import NDArray

from evaluators.formulas.fault_watch import (
    FEW,
    LEAST,
    LIMIT,
    LIMIT_OF_PEOPLE,
    MANY,
    MOST,
    NEW,
    NEW_NORMAL,
    OVER,
    RATIOS,
)

Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]
_RATIOS = np.array(RATIOS)[:, None]


class ManyWatches:
    """What is of a sum has a row for each of RATIOS; everything has a column for each history."""

    def __init__(self, count: int, *, step: float, of_people: bool = False) -> None:
        """`step`: seconds between two uses."""
        self.raised = np.zeros(count, bool)
        self._step = step
        self._of_people = of_people
        self._limits = np.array([LIMIT_OF_PEOPLE if of_people else LIMIT, LIMIT, LIMIT])[:, None]
        self._number = -1
        self._past = np.zeros((4, count))  # n0, f0, n1, f1, as in `UseCounts`
        self._waiting = np.zeros((4, count))
        self._has_failed = np.zeros(count, bool)
        self._sessions = np.zeros((2, count))  # uses, failures
        self._totals = np.zeros((3, count))
        self._sums = np.zeros(
            (6, 3, count)
        )  # as in `RatioSum`: uses, failures, ... before, tries, times
        self._fault = np.zeros((4, count))  # began, before, rate, over

    def feed(self, failed: Flags) -> Flags:
        """Take in a use of each history; returns which of them raise a fault."""
        self._number += 1
        self._expire()
        up = self.raised.copy()
        raising = self._search(failed, up)
        self._follow(failed, up)
        self._learn(failed, ~(up | raising))
        self.raised |= raising
        return raising

    # --- inside ------------------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        old = self.raised & (self._number * self._step - self._fault[0] >= NEW_NORMAL)
        if old.any():
            for each in (self._past, self._sessions):
                each[:, old] = 0.0
            self._begin_anew(old)

    def _begin_anew(self, which: Flags) -> None:
        self.raised[which] = self._has_failed[which] = False
        self._waiting[:, which] = self._totals[:, which] = 0.0

    def _search(self, failed: Flags, up: Flags) -> Flags:
        n0, f0, n1, f1 = self._past
        looks = ~up & (failed | self._totals.any(axis=0)) & (n0 + n1 >= LEAST)
        before = np.where(self._has_failed, _upper(f1, n1 + LEAST), _upper(f0, n0))
        begins = looks & (self._totals == 0)
        uses, failures, uses_before, failures_before, tries, times = self._sums
        for each in (uses, failures, tries, times):
            each[begins] = 0.0
        np.copyto(uses_before, self._sessions[0], where=begins)
        np.copyto(failures_before, self._sessions[1], where=begins)
        uses += looks
        failures += looks & failed
        tries += looks & ~self._has_failed
        times += looks & failed & ~self._has_failed
        moved = (
            self._totals + np.where(failed, np.log(_RATIOS), 0) - np.log(1 + before * (_RATIOS - 1))
        )
        np.copyto(self._totals, np.clip(moved, 0, self._limits), where=looks)
        reached = looks & (self._totals >= self._limits)
        by_sum = reached.any(axis=0)
        new = looks & ~by_sum & failed & (failures_before[0] == 0) & (failures[0] >= MANY)
        if new.any():
            new[new] = _evidence(tries[0, new], times[0, new], uses_before[0, new]) >= NEW
        raising = by_sum | new
        if raising.any():
            self._raise(raising, reached)
        return raising

    def _raise(self, raising: Flags, reached: Flags) -> None:
        rates = np.where(reached, self._sums[1] / np.maximum(self._sums[0], 1), -1.0)
        best = np.where(reached.any(axis=0), rates.argmax(axis=0), 0)[raising]
        uses, failures = self._sums[:2, best, raising]
        n0, f0, n1, f1 = self._past[:, raising]
        before = _upper(f0 + f1, n0 + n1)
        rate = np.maximum((failures + 1) / (uses + 2), 2 * before / (1 + before))
        began = np.full(len(before), self._number * self._step)
        self._fault[:, raising] = began, before, np.minimum(0.999, rate), np.zeros(len(before))
        self._waiting[:, raising] = 0.0

    def _follow(self, failed: Flags, up: Flags) -> None:
        if not up.any():
            return
        before, rate = self._fault[1, up], self._fault[2, up]
        odds = np.where(failed[up], before / rate, (1 - before) / (1 - rate))
        self._fault[3, up] = np.maximum(0.0, self._fault[3, up] + np.log(odds))
        self._begin_anew(up & (self._fault[3] >= OVER))

    def _learn(self, failed: Flags, learns: Flags) -> None:
        past, waiting = self._past, self._waiting
        after = (learns & ~self._has_failed, learns & self._has_failed)
        for row, which in enumerate(after):
            waiting[2 * row] += which
            waiting[2 * row + 1] += which & failed
        is_still = learns & (self._totals[0] == 0)
        may_learn = is_still if self._of_people else learns
        for row, which in enumerate((is_still, may_learn & ~failed)):
            both = slice(2 * row, 2 * row + 2)
            past[both] += np.where(which, waiting[both], 0.0)
            waiting[both] = np.where(which, 0.0, waiting[both])
        many = past[0] + past[2] >= MOST
        if many.any():
            past[:, many] /= 2
            self._sessions[:, many] //= 2
        np.copyto(self._has_failed, failed, where=learns)
        self._sessions[0] += learns
        self._sessions[1] += learns & failed


def _upper(failures: Numbers, uses: Numbers) -> Numbers:
    some = np.maximum(uses, 1)
    spread = np.sqrt(failures * (uses - failures) / some + 1)
    return np.where(uses > 0, (failures + 2 + 2 * spread) / (uses + 4), 1.0)


def _evidence(uses: Numbers, failures: Numbers, uses_before: Numbers) -> Numbers:
    """As `evidence`, where nothing failed before."""
    before = _upper(np.zeros_like(uses_before), uses_before)
    rate = failures / np.maximum(uses, 1)
    spared = np.where(
        rate < 1, (1 - rate) * np.log(np.maximum(1 - rate, 1e-300) / (1 - before)), 0.0
    )
    found = uses * (rate * np.log(np.maximum(rate, 1e-300) / before) + spared)
    return np.where((uses_before >= LEAST) & (failures >= FEW) & (rate > before), found, 0.0)
