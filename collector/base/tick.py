"""Ticks: what looks again and again does so at multiples of its period, so that an idle service wakes up seldom."""

from __future__ import annotations

import asyncio
from contextlib import suppress


def until_tick(every: float) -> float:
    """Seconds until the event loop's time is a multiple of `every` seconds: more than 0, at most `every`."""
    return every - asyncio.get_running_loop().time() % every


async def next_tick(every: float, ending: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(until_tick(every)):
            await ending.wait()
