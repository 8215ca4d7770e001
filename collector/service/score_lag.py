"""How long the oldest closed trace has waited for its scores: what the receiver goes by when it takes less."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from collector.base.clock import Clock, next_tick
from collector.base.errors import Retryable
from collector.config.tree import Config
from collector.log.port import TRACES, Lag, Lags, Log
from collector.service.rooms import SCORING

EVERY = 1.0
"""Seconds between two measurements."""
PATIENCE = 5.0
"""Seconds that one may take."""


class ScoreLag:
    """Of one process with the roles `receive`, `assemble` and `score` over a log of its own.

    A trace waits from when it was due to close until scoring has read its record: one that takes long to be scored
    holds up no other, and is not a reason to take less. What had closed before this process began waits since then.

    While the log does not answer, what waited goes on waiting.

    Args:
        log: The log.
        clock: Its clock.
    """

    def __init__(self, log: Lags, clock: Clock) -> None:
        self.unwritten: Callable[[], Lag] = Lag
        """What has closed and is not written: assembly's, once that is there."""
        self._log = log
        self._clock = clock
        self._began = clock()
        self._unread = Lag()

    def __call__(self) -> float:
        times = (self._unread.oldest, self.unwritten().oldest)
        oldest = min((each for each in times if each is not None), default=None)
        return 0.0 if oldest is None else max(0.0, self._clock() - max(oldest, self._began))

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self.measure()
            await next_tick(EVERY, stopping)

    async def measure(self) -> None:
        with suppress(Retryable, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                self._unread = await self._log.lag(SCORING, TRACES, unread=True) or Lag()


def score_lag(config: Config, log: Log, clock: Clock) -> ScoreLag | None:
    """None: other processes score what this one receives, Kafka holds what waits, or it is switched off."""
    everything = {"receive", "assemble", "score"} <= set(config.roles)
    if not everything or config.log.kind == "kafka" or config.receiver.max_score_lag is None:
        return None
    return ScoreLag(log, clock) if isinstance(log, Lags) else None
