"""Waiting for what other tasks do."""

import asyncio
import time
from collections.abc import Callable


async def eventually(claim: Callable[[], bool], *, within: float = 60.0) -> None:
    """Return when the claim is true."""
    async with asyncio.timeout(within):
        while not claim():  # noqa: ASYNC110 - the claim is about many things, none of which has an event
            await asyncio.sleep(0.002)


def wait_until(claim: Callable[[], bool], *, timeout: float) -> None:
    """Return when the claim is true of another process."""
    deadline = time.monotonic() + timeout
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.05)
