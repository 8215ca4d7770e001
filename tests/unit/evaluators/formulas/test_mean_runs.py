"""The mean run of each sum to a false alarm, exactly: the chain of Brook and Evans (1972) over uniform ranks."""

from typing import Any

import numpy as np
import pytest

from evaluators.formulas.drift import Sum
from evaluators.formulas.past_limits import PastLimits

LIMITS = PastLimits()
SESSIONS = 576_000
"""Mean run of the four sums together: 0.05 alarms in 28,800 sessions."""


def transitions(slack: float, limit: float, states: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probabilities from the middle of each of `states` intervals of [0, limit) to each interval; 0 is in the first."""
    width = limit / states
    middle = (np.arange(states) + 0.5) * width
    low, high = (middle - 0.5 - slack)[:, None], (middle + 0.5 - slack)[:, None]
    edge = np.arange(states) * width
    found = np.clip(np.minimum(high, edge + width) - np.maximum(low, edge), 0, None)
    found[:, 0] += np.clip(-low[:, 0], 0, None)
    return found


def mean_run(slack: float, limit: float, states: int = 500) -> float:
    """Uniform ranks from a sum of 0 until it reaches the limit."""
    chain = np.eye(states) - transitions(slack, limit, states)
    return float(np.linalg.solve(chain, np.ones(states))[0])


def test_the_mean_run_of_each_sum_is_four_times_that_of_all() -> None:
    """All sums together have less than the stated false alarms by the union bound: the rates of the four are added."""
    runs = [mean_run(*each) for each in zip(LIMITS.slacks, LIMITS.limits, strict=True)]

    assert [run / (4 * SESSIONS) for run in runs] == pytest.approx([1.0] * 4, rel=0.1)
    assert 28_800 * sum(1 / run for run in runs) <= 0.0525


def test_the_chain_is_that_of_the_code() -> None:
    """Mean runs of the code's own sums over uniform ranks, at limits low enough to be met often."""
    rng = np.random.default_rng(5)
    for slack, limit in ((0.02, 1.5), (0.16, 1.0)):
        runs: list[int] = []
        for _ in range(300):
            own, count = Sum(), 0
            while own.total < limit:
                own.feed(rng.random(), 1.0, slack)
                count += 1
            runs.append(count)

        assert np.mean(runs) == pytest.approx(mean_run(slack, limit), rel=0.15)
