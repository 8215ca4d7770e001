"""Time as an argument: code that needs it takes a `Clock`, so that tests can set it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress


def until_tick(every: float) -> float:
    """Seconds until the event loop's time is a multiple of `every` seconds: more than 0, at most `every`."""
    return every - asyncio.get_running_loop().time() % every


async def next_tick(every: float, ending: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(until_tick(every)):
            await ending.wait()


Clock = Callable[[], float]
"""Unix seconds. The machine's may be set; log time goes on whatever is done to that (`steady_clock`)."""


def wall() -> float:
    """The machine's clock, which may be set forwards or back: the only place that reads it."""
    return time.time()  # noqa: TID251 - the one place
