"""Whether the process lives and whether it takes spans.

Liveness is the event loop answering at all. Readiness is receivers bound and not stopping: an outage of Kafka or of a
judge fails neither, because a restart would not end it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from prometheus_client import Gauge

BEAT = 0.5
"""Seconds between heartbeats."""

State = Literal["starting", "ready", "stopping"]


class Health:
    """Set by `collector/app.py`, read by `/readyz`.

    Args:
        lag: Takes the seconds by which the last heartbeat was late.
        monotonic: Seconds that never jump.
    """

    def __init__(self, lag: Gauge, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lag = lag
        self._monotonic = monotonic
        self.started = False
        """Receivers are bound."""
        self.stopping = False

    @property
    def state(self) -> State:
        """Stopping wins over started."""
        if self.stopping:
            return "stopping"
        return "ready" if self.started else "starting"

    async def run(self, stopping: asyncio.Event) -> None:
        """Beat until `stopping` is set."""
        while not stopping.is_set():
            await self.beat(stopping)

    async def beat(self, stopping: asyncio.Event, *, every: float = BEAT) -> None:
        """Sleep once and note how late the loop woke up."""
        due = self._monotonic() + every
        with suppress(TimeoutError):
            async with asyncio.timeout(every):
                await stopping.wait()
        self._lag.set(max(0.0, self._monotonic() - due))
