"""Bounds how many gRPC messages are read at once: grpc holds each in memory before its size is known to us.

A slot that becomes free goes to the waiting sender that holds the fewest; one sender never holds all.
"""

import asyncio
from asyncio import Future, TimerHandle
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from collector.receiver.answers import NoRoom, SlowSender

_T = TypeVar("_T")
SLOTS = 8
"""Messages that are read at once, each at most `receiver.max_request` and a quarter."""
WAIT = 1.0  # seconds that a call waits for a slot; then its sender is asked to come back
PATIENCE = 5.0  # seconds that a message may take while other calls wait for its slot


@dataclass(slots=True)
class _Read:
    sender: str
    begun: float
    due: float


class MessageSlots:
    """Slots for reading a message. Owned by one event loop.

    `timeout`: seconds within which a message must arrive while no other call waits. `slots`: how many there are, above
    one.
    """

    def __init__(self, timeout: float, *, slots: int = SLOTS) -> None:
        self._timeout = timeout
        self._free = slots
        self._most = slots - 1  # what one sender may hold
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[Future[None]]] = {}
        self._reading: dict[asyncio.Timeout, _Read] = {}  # oldest first
        self._timer: TimerHandle | None = None
        """One for all reads: on uvloop a timer for each costs as much as all else that is done for a small message."""

    async def read(self, sender: str, message: Callable[[], Awaitable[_T]]) -> _T:
        """Read a message of this sender, which takes one slot as long as that lasts.

        Raises NoRoom: every slot is taken. Raises SlowSender: the message did not arrive in time.
        """
        if self._free and self._held_by(sender) < self._most:
            self._hold(sender)
        else:
            await self._wait(sender)
        deadline = asyncio.timeout(None)
        try:
            async with deadline:
                self._begin(deadline, sender)
                return await message()
        except TimeoutError as error:
            raise SlowSender(
                "the message did not arrive in time (receiver.body_timeout)"
            ) from error
        finally:
            self._reading.pop(deadline, None)
            self._give_back(sender)

    def _begin(self, deadline: asyncio.Timeout, sender: str) -> None:
        now = asyncio.get_running_loop().time()
        self._reading[deadline] = _Read(sender, now, now + self._timeout)
        if self._timer is None:
            self._arm(now + self._timeout)

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._check)

    def _check(self) -> None:
        """End every read whose time is over; come again for the next one."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        over = [deadline for deadline, read in self._reading.items() if read.due <= now]
        for deadline in over:
            del self._reading[deadline]
            deadline.reschedule(now)
        if self._reading:
            self._arm(min(read.due for read in self._reading.values()))

    async def _wait(self, sender: str) -> None:
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
        slow = [read for read in self._reading.values() if read.due > read.begun + PATIENCE]
        if not slow:
            return
        chosen = min(slow, key=lambda read: (-self._held_by(read.sender), read.begun))
        chosen.due = chosen.begun + PATIENCE
        if self._timer is None or self._timer.when() > chosen.due:
            self._arm(chosen.due)
