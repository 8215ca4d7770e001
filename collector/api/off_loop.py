"""Work on whole traces and pages, away from the event loop and a bounded number at once."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from collector.api.answers import RequestRefused
from collector.api.families import ApiFamilies

AT_ONCE = 2  # a whole trace takes many times its size in memory, and its thread takes turns with the event loop
WAITING = 64  # requests that may wait for a place
T = TypeVar("T")


class OffLoop:
    """Places for requests that read whole traces or render pages; a request has its place from reading to rendering."""

    def __init__(self, families: ApiFamilies) -> None:
        self._refused = families.answers_refused.labels("busy")
        self._places = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[None]:
        """Wait for a place and have it. Raises Refused: too many wait already."""
        if self._waiting >= WAITING:
            self._refused.inc()
            message = "too many traces and pages are being read; try again in a few seconds"
            raise RequestRefused(503, message, headers={"retry-after": "5"})
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in a thread, in a place. Raises Refused: too many wait already."""
        async with self.place():
            return await asyncio.to_thread(work)
