"""How CPU time grows when an input doubles."""

from __future__ import annotations

import gc
from collections.abc import Callable

from tests.support.cpu import cpu_of

ENOUGH = 0.05
"""CPU seconds below which a ratio says nothing."""
MOST = 6.0
TRIES = 3


def growth(work: Callable[[int], Callable[[], object]], first: int, last: int) -> float:
    """Time at twice the size over time at a size, the least of a few tries; 0 when `last` takes no time at all.

    `work` makes the input of a size and returns what is to be measured.
    """
    gc.disable()
    try:
        return _growth(work, first, last)
    finally:
        gc.enable()


def _growth(work: Callable[[int], Callable[[], object]], first: int, last: int) -> float:
    size = first
    while (used := cpu_of(work(size), at_most=MOST)) < ENOUGH:
        if size >= last:
            return 0.0
        size *= 2
    ratio = float("inf")
    for _ in range(TRIES):
        gc.collect()
        used = min(used, cpu_of(work(size), at_most=MOST))
        ratio = min(ratio, cpu_of(work(2 * size), at_most=4 * MOST) / used)
        if ratio < 2.2:
            break
    return ratio
