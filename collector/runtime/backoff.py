"""Waiting between tries: exponential, bounded, cut short by a stop."""

from __future__ import annotations

import asyncio


class Backoff:
    """0.2, 0.4, 0.8 ... up to `longest` seconds; `reset` after a success."""

    def __init__(self, *, first: float = 0.2, longest: float = 30.0) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._next = self._first

    async def wait(self, stopping: asyncio.Event) -> None:
        """Wait for the next, longer time, or until `stopping` is set."""
        delay, self._next = self._next, min(self._longest, self._next * 2)
        try:
            async with asyncio.timeout(delay):
                await stopping.wait()
        except TimeoutError:
            return
