"""How much CPU, and how many steps, something takes; and how that grows when an input doubles."""

import gc
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import sqrt
from statistics import median
from types import FrameType
from typing import Any

ENOUGH = 0.03
"""CPU seconds below which a ratio says nothing."""
MOST = 6.0
TRIES = 9
SURE = 2.2
"""A ratio below it is not measured again."""


def growth(work: Callable[[int], Callable[[], object]], first: int, last: int) -> float:
    """Time at twice the size over time at a size, by the time at four times; 0 when `last` takes no time at all.

    `work` makes the input of a size and returns what is to be measured. Both sizes are measured in turn, since a
    machine that others share changes its speed within seconds: the ratio is the median of the pairs, or that of the
    least times where this is less. A noise of a third in the times is one of a sixth in the ratio: four times the
    size, not twice. A ratio that is not sure is measured again with larger inputs, of which neither fits the cache of
    a processor that others share: what grows too fast grows faster there, and the lesser ratio counts.
    """
    gc.disable()
    try:
        return _growth(work, first, last)
    finally:
        gc.enable()


def _growth(work: Callable[[int], Callable[[], object]], first: int, last: int) -> float:
    size = first
    while cpu_of(work(size), at_most=MOST) < ENOUGH:
        if size >= last:
            return 0.0
        size *= 2
    ratio = _ratio(work, size)
    return ratio if ratio < SURE else min(ratio, _ratio(work, 4 * size, tries=3))


def _ratio(work: Callable[[int], Callable[[], object]], size: int, *, tries: int = TRIES) -> float:
    ratio = float("inf")
    pairs: list[tuple[float, float]] = []
    while ratio >= SURE and len(pairs) < tries:
        gc.collect()
        small = cpu_of(work(size), at_most=MOST)
        gc.collect()
        pairs.append((small, cpu_of(work(4 * size), at_most=16 * MOST)))
        least = min(big for _, big in pairs) / min(small for small, _ in pairs)
        ratio = sqrt(min(least, median(big / small for small, big in pairs)))
    return ratio


class TooMuchCpu(BaseException):
    """Not an `Exception`: code that answers every error would swallow it."""


@contextmanager
def within_cpu(seconds: float) -> Generator[None]:
    """Raise TooMuchCpu in this thread once it has used so many CPU seconds, however loaded the machine is."""

    def ended(number: int, frame: FrameType | None) -> None:
        raise TooMuchCpu(f"more than {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGPROF, ended)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def cpu_of(work: Callable[[], object], *, at_most: float = 20.0) -> float:
    """CPU seconds that a call takes; `at_most` when it takes more."""
    before = time.process_time()
    try:
        with within_cpu(at_most):
            work()
    except TooMuchCpu:
        return at_most
    return time.process_time() - before


def steps(work: Callable[[], object]) -> int:
    """The lines that run, also of comprehensions, once for each time round. What C does in one line is one step."""
    count = 0

    def line(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    gc.disable()  # what other tests have left has finalizers in Python, whose lines would count
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count
