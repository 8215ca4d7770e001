"""A process' memory: what is freed goes back to the system once load has gone.

Where the C library has no `malloc_trim` (musl, macOS), nothing happens.
"""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Generator

QUIET = 3.0  # seconds with hardly any work after which load has gone
LONGEST = 60.0  # seconds of lasting load after which memory is given back all the same
WORTH_IT = 0.5  # CPU seconds of work, since memory was last given back, that may have freed some
_IDLE = 0.1  # of one CPU: below it a process counts as quiet
_EVERY = 1.0  # seconds between two looks


class TrimTimer:
    """Says when memory is to be given back: after load, and now and then while it lasts. Pure."""

    def __init__(self, now: float, used: float) -> None:
        self._looked, self._used = now, used
        self._trimmed, self._used_then = now, used
        self._busy = now  # when the process was last seen at work

    def is_due(self, now: float, used: float) -> bool:
        """Whether to give memory back now; the caller then does.

        `now`: seconds that never jump. `used`: CPU seconds that the process has used so far.
        """
        if used - self._used > _IDLE * (now - self._looked):
            self._busy = now
        self._looked, self._used = now, used
        if used - self._used_then < WORTH_IT:
            return False
        if now - self._busy < QUIET and now - self._trimmed < LONGEST:
            return False
        self._trimmed, self._used_then = now, used
        return True


@contextlib.contextmanager
def trimmed_heap() -> Generator[None]:
    """While this lasts, a thread gives freed memory back when that is due."""
    trim = _malloc_trim()
    if trim is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_keep_trimming, args=(trim, over), name="heap", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _keep_trimming(trim: Callable[[], object], over: threading.Event) -> None:
    timer = TrimTimer(time.monotonic(), time.process_time())
    while not over.wait(_EVERY):
        if timer.is_due(time.monotonic(), time.process_time()):
            trim()


def _malloc_trim() -> Callable[[], object] | None:
    """The C library's own, which other threads run beside; None: it has none."""
    try:
        function = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None
    return lambda: function(ctypes.c_size_t(0))
