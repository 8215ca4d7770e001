"""What a process that runs third parties' evaluators may take, and which of them are switched off for what they did."""

import contextlib
import ctypes
import logging
import os
import resource
import signal
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from collector.base.frames import killed_before_parent
from evaluators.model import Failure

PLUGIN_MEMORY = 1 << 30  # bytes of a process: ours take 60 MB, and a local model a few hundred more
MOST_CHILDREN = 100  # that a process has: a pool of workers fits, some more with each trace do not

STRIKES = 3  # deaths and time-outs in WINDOW that switch an evaluator off: one may be chance, and each costs a process
WINDOW = 600.0  # seconds in which they count, and for which it is off
SHORTER = 4  # how much shorter its time is after a strike: three whole ones would hold up the sessions that wait for it
WHY_OFF = f"it ended its process or took too long {STRIKES} times in {WINDOW / 60:g} min"
OFF = Failure(type="switched_off", message=WHY_OFF)
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_log = logging.getLogger(__name__)


def limit_plugins() -> None:
    with contextlib.suppress(OSError, ValueError):  # a lower limit holds already; not Linux
        resource.setrlimit(resource.RLIMIT_DATA, (PLUGIN_MEMORY, PLUGIN_MEMORY))
    killed_before_parent(1000)
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        # One that hangs does not see its socket's end, where the parent was killed.
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def end_if_forked(pid: int) -> None:
    """Called as an evaluator ends in the process `pid`: a copy that it made must not go on in our code.

    Nor does a process that it has left too many children in.
    """
    if os.getpid() != pid or _children() > MOST_CHILDREN:
        os._exit(1)


def _children() -> int:
    lists = Path("/proc/self/task").glob("*/children")  # none where it is not Linux
    return sum(len(each.read_text().split()) for each in lists)


class PluginSwitch:
    """One for all third parties' evaluators. `clock`: seconds that never jump."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._strikes: dict[str, deque[float]] = {}
        self._off_until: dict[str, float] = {}

    @property
    def off(self) -> frozenset[str]:
        now = self._clock()
        return frozenset(each for each, until in self._off_until.items() if now < until)

    def blame(self, *evaluators: str, subject: str, late: float | None = None) -> Failure:
        """What an outcome says of the evaluator that ended its process now, or took more than `late` seconds.

        `evaluators`: more than one where it is not known which of them did.
        """
        what = "ended its process" if late is None else f"took more than {late:g} s"
        names = "` or `".join(evaluators)
        _log.warning("Evaluator `%s` %s on a %s", names, what, subject)
        for each in evaluators:
            self._strike(each)
        if late is None:
            return Failure(type="worker_died", message="it ended its process")
        return Failure(type="timeout", message=f"no answer within {late:g} s")

    def _strike(self, evaluator: str) -> None:
        if evaluator in self.off:  # it had more than one process
            return
        now = self._clock()
        strikes = self._strikes.setdefault(evaluator, deque(maxlen=STRIKES))
        strikes.append(now)
        if len(strikes) == STRIKES and now - strikes[0] <= WINDOW:
            strikes.clear()
            self._off_until[evaluator] = now + WINDOW
            minutes = WINDOW / 60
            _log.error("Evaluator `%s` is switched off for %g min: %s", evaluator, minutes, WHY_OFF)

    def limit(self, evaluator: str, timeout: float) -> float:
        """Seconds that it may take now."""
        since = self._clock() - WINDOW
        is_suspect = any(since <= each for each in self._strikes.get(evaluator, ()))
        return timeout / SHORTER if is_suspect else timeout
