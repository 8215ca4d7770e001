"""A bound on CPU time that ends what exceeds it, so that a test of an endless computation ends."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


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
