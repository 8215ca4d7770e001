"""Work in slices: between two pieces of a long one, the other tasks of the event loop run."""

from __future__ import annotations

import asyncio
import time

SLICE = 0.0005
"""Seconds of work after which other tasks run: senders wait for their acknowledgements."""


class TimeSlice:
    """One task's slice.

    Not by the loop's own clock: that of uvloop stands still for as long as one task runs.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def give_way(self) -> None:
        """To be awaited between two pieces of work: lets other tasks run if the slice is used up."""
        if time.perf_counter() - self._began < SLICE:
            return
        await asyncio.sleep(0)
        self._began = time.perf_counter()
