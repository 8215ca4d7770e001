"""How fast a body must come."""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

RATE = 32 << 10
"""Bytes a second."""
PATIENCE = 5.0
"""Seconds that a body may be behind `RATE`."""


@dataclass(slots=True)
class Pace:
    """By when the next bytes of a body must come.

    What comes buys time at `RATE`, but never more than `PATIENCE` from now: a body that came fast and then stands still
    ends as soon as one that never came.
    """

    due: float
    """Seconds on the clock of `took`; a body without more bytes by then is too slow."""
    end: float
    """When the whole body must be there, however fast it comes."""

    @classmethod
    def begin(cls, now: float, *, timeout: float) -> Pace:
        """A body that begins now and may take `timeout` seconds."""
        end = now + timeout
        return cls(min(now + PATIENCE, end), end)

    def took(self, size: int, now: float) -> None:
        """So many bytes came."""
        self.due = min(self.due + size / RATE, now + PATIENCE, self.end)


@asynccontextmanager
async def ending(pace: Pace) -> AsyncGenerator[None]:
    """End what is inside once `pace` is due, with one timer, however often that moves.

    Raises:
        TimeoutError: it is due.
    """
    loop = asyncio.get_running_loop()
    timer: TimerHandle | None = None

    def check() -> None:
        nonlocal timer
        if pace.due > loop.time():
            timer = loop.call_at(pace.due, check)
        else:
            deadline.reschedule(pace.due)

    async with asyncio.timeout(None) as deadline:
        check()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
