"""What processes that run third parties' evaluators may take, and which evaluators are switched off.

These have ended or held up their processes.
"""

import contextlib
import logging
import os
import resource
import time
from collections import deque
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
_log = logging.getLogger(__name__)


def limit_plugins() -> None:
    with contextlib.suppress(OSError, ValueError):  # a lower limit holds already; not Linux
        resource.setrlimit(resource.RLIMIT_DATA, (PLUGIN_MEMORY, PLUGIN_MEMORY))
    killed_before_parent(1000)


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
    """Takes `now`, in seconds of `time.monotonic`."""

    def __init__(self) -> None:
        self._strikes: dict[str, deque[float]] = {}
        self._off_until: dict[str, float] = {}

    def strike(self, evaluator: str, now: float) -> bool:
        """It ended its process or took too long; returns whether that switches it off."""
        strikes = self._strikes.setdefault(evaluator, deque(maxlen=STRIKES))
        strikes.append(now)
        if len(strikes) < STRIKES or now - strikes[0] > WINDOW:
            return False
        strikes.clear()
        self._off_until[evaluator] = now + WINDOW
        return True

    def blame(self, *evaluators: str, subject: str, late: float | None = None) -> Failure:
        """What an outcome says of the evaluator that ended its process now, or took more than `late` seconds.

        `evaluators`: more than one where it is not known which of them did.
        """
        what = "ended its process" if late is None else f"took more than {late:g} s"
        names = "` or `".join(evaluators)
        _log.warning("Evaluator `%s` %s on a %s", names, what, subject)
        for each in evaluators:
            if self.strike(each, time.monotonic()):
                minutes = WINDOW / 60
                _log.error("Evaluator `%s` is switched off for %g min: %s", each, minutes, WHY_OFF)
        if late is None:
            return Failure(type="worker_died", message="it ended its process")
        return Failure(type="timeout", message=f"no answer within {late:g} s")

    def is_off(self, evaluator: str, now: float) -> bool:
        return now < self._off_until.get(evaluator, 0.0)

    def off(self, now: float) -> frozenset[str]:
        return frozenset(each for each in self._off_until if self.is_off(each, now))

    def limit(self, evaluator: str, timeout: float, now: float) -> float:
        """Seconds that it may take now."""
        strikes = self._strikes.get(evaluator)
        is_suspect = strikes is not None and any(now - each <= WINDOW for each in strikes)
        return timeout / SHORTER if is_suspect else timeout
