"""Bounds how many gRPC messages are read at once: grpc holds each in memory before its size is known to us.

A slot that becomes free goes to the waiting sender that holds the fewest; one sender never holds all.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from operator import itemgetter

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
        slots: How many there are, above one.
    """

    def __init__(self, timeout: float, *, slots: int = SLOTS) -> None:
        self._timeout = timeout
        self._free = slots
        self._most = slots - 1
        """What one sender may hold."""
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[Future[None]]] = {}
        self._reading: dict[asyncio.Timeout, tuple[str, float]] = {}
        """Whose each read is and when it began, oldest first."""

    @asynccontextmanager
    async def slot(self, sender: str) -> AsyncGenerator[None]:
        """One slot, as long as a message of this sender is read.

        Raises:
            NoRoom: every slot is taken.
            SlowSender: the message did not arrive in time.
        """
        await self._take(sender)
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                self._reading[deadline] = sender, asyncio.get_running_loop().time()
                yield
        except TimeoutError as error:
            raise SlowSender(
                "the message did not arrive in time (receiver.body_timeout)"
            ) from error
        finally:
            self._reading.pop(deadline, None)
            self._give_back(sender)

    async def _take(self, sender: str) -> None:
        if self._free and self._held_by(sender) < self._most:
            self._hold(sender)
            return
        self._hasten()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(sender, deque()).append(turn)
        has_slot = False
        try:
            async with asyncio.timeout(WAIT):
                await turn
                has_slot = True
        except TimeoutError as error:
            raise NoRoom("too many messages are being received at once") from error
        finally:
            if not has_slot:
                self._give_up(sender, turn)

    def _give_up(self, sender: str, turn: Future[None]) -> None:
        """Wait no longer; the slot may have been given already."""
        if turn.done() and not turn.cancelled():
            self._give_back(sender)
            return
        queue = self._waiting.get(sender)
        if queue is not None and turn in queue:
            queue.remove(turn)
            self._forget_empty(sender, queue)

    def _held_by(self, sender: str) -> int:
        return self._held.get(sender, 0)

    def _hold(self, sender: str) -> None:
        self._free -= 1
        self._held[sender] = self._held_by(sender) + 1

    def _give_back(self, sender: str) -> None:
        self._free += 1
        self._held[sender] -= 1
        if not self._held[sender]:
            del self._held[sender]
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        """Give a slot to the sender that holds the fewest."""
        for sender in sorted(self._waiting, key=self._held_by):
            queue = self._waiting[sender]
            while queue and self._held_by(sender) < self._most:
                turn = queue.popleft()
                if not turn.done():
                    self._hold(sender)
                    turn.set_result(None)
                    self._forget_empty(sender, queue)
                    return
            self._forget_empty(sender, queue)

    def _forget_empty(self, sender: str, queue: deque[Future[None]]) -> None:
        if not queue:
            del self._waiting[sender]

    def _hasten(self) -> None:
        """Give one more read `PATIENCE` seconds in all: the oldest of the sender that holds the most."""
        slow = [
            (-self._held_by(sender), begun, deadline)
            for deadline, (sender, begun) in self._reading.items()
            if (deadline.when() or 0) > begun + PATIENCE
        ]
        if slow:
            _, begun, deadline = min(slow, key=itemgetter(0, 1))
            deadline.reschedule(max(asyncio.get_running_loop().time(), begun + PATIENCE))
