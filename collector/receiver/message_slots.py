"""Bounds how many gRPC messages are read at once: grpc holds each in memory before its size is known to us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from collector.receiver.answers import NoRoom, SlowSender

SLOTS = 8
"""Messages that are read at once, each at most `receiver.max_request` and a quarter."""
WAIT = 1.0
"""Seconds that a call waits for a slot; then its sender is told to come back."""
PATIENCE = 5.0
"""Seconds that a message may take while other calls wait for its slot."""


class MessageSlots:
    """Slots for reading a message. Owned by one event loop.

    Args:
        timeout: Seconds within which a message must arrive while no other call waits.
    """

    def __init__(self, timeout: float, *, slots: int = SLOTS) -> None:
        self._timeout = timeout
        self._free = asyncio.Semaphore(slots)
        self._reading: dict[asyncio.Timeout, float] = {}
        """When each read began, oldest first."""

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """One slot, as long as a message is read.

        Raises:
            NoRoom: every slot is taken.
            SlowSender: the message did not arrive in time.
        """
        await self._take()
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                self._reading[deadline] = asyncio.get_running_loop().time()
                yield
        except TimeoutError as error:
            raise SlowSender("the message did not arrive in time") from error
        finally:
            self._reading.pop(deadline, None)
            self._free.release()

    async def _take(self) -> None:
        if self._free.locked():
            self._hasten()
        try:
            async with asyncio.timeout(WAIT):
                await self._free.acquire()
        except TimeoutError as error:
            raise NoRoom("too many messages are being received at once") from error

    def _hasten(self) -> None:
        """Give the slot that was taken first `PATIENCE` seconds in all."""
        for deadline, begun in self._reading.items():
            when = deadline.when()
            if when is not None and when > begun + PATIENCE:
                now = asyncio.get_running_loop().time()
                deadline.reschedule(max(now, begun + PATIENCE))
                return
