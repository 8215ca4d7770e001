"""Log time: it goes on by elapsed seconds, whatever is done to the machine's clock.

    machine's clock   10:00 ---- 10:05 | set back: 08:05 ---- 08:10
    log time          10:00 ---- 10:05 ----------------------- 10:10

A start begins at the machine's clock, or at the newest log time there is, if that is later. On Kafka the brokers stamp
the records, so it begins at their time.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from collector.base.clock import Clock, next_tick, wall
from collector.base.families import RuntimeFamilies

APART = 5.0
"""Seconds that log time and the machine's clock may differ before that is worth a warning."""
_EVERY = 2.0  # seconds between two comparisons
_log = logging.getLogger(__name__)


def elapsed() -> float:
    """Seconds that never jump; while the machine sleeps they go on, where the system has such a clock."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class SteadyClock:
    """A `Clock` that nothing sets, shared by all that compares with log times.

    `wall`: the machine's clock. It may be set at any time. `elapsed`: seconds that never jump.
    """

    def __init__(self, *, wall: Clock = wall, elapsed: Callable[[], float] = elapsed) -> None:
        self.wall = wall
        self._elapsed = elapsed
        self._began = wall() - elapsed()

    def __call__(self) -> float:
        """Unix seconds, as far as the machine's clock was right at the start."""
        return self._began + self._elapsed()

    def go_on_from(self, newest: float) -> None:
        """Log time has come to `newest` before: it goes on from there, if it is not later anyway."""
        self._began = max(self._began, newest - self._elapsed())

    def begin_at(self, now: float) -> None:
        """Set log time to `now`, which may be earlier than it was: at a start, before traces are closed by it."""
        self._began = now - self._elapsed()

    @property
    def ahead(self) -> float:
        """Seconds that it is ahead of the machine's clock; negative: behind."""
        return self() - self.wall()


class ClockWatch:
    """Says once when the machine's clock and log time part, and sets `spanwise_log_time_ahead_seconds`."""

    def __init__(self, clock: SteadyClock, families: RuntimeFamilies) -> None:
        self._clock = clock
        self._warned = 0.0  # how far ahead it was at the last warning
        families.log_time_ahead.set_function(lambda: clock.ahead)

    def look(self) -> None:
        ahead = self._clock.ahead
        if abs(ahead - self._warned) <= APART:
            return
        self._warned = ahead if abs(ahead) > APART else 0.0
        now = self._clock()
        if self._warned:
            _log.warning(
                "The machine's clock says %s, log time is %s: the clock was set, was ahead before, or Kafka's brokers "
                "have another one. Log time goes on by elapsed seconds; after a restart it is that of the brokers, and "
                "without Kafka the clock's as soon as that is the later one.",
                _text(now - ahead),
                _text(now),
            )
        else:
            _log.info("The machine's clock and log time agree again: %s.", _text(now))

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            self.look()
            await next_tick(_EVERY, stopping)


def _text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
