"""Try again what may pass by itself, more and more rarely."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from collector.errors import Retryable

Sleep: TypeAlias = Callable[[float], Awaitable[None]]

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Retry:
    """How a room waits for its log and its workers.

    Args:
        room: who waits, for the warning.
        sleep: `asyncio.sleep`, or a test's.
        last_attempts: How many are still made once `stopping` is set; None stands for one that is set. What is not
            written then waits in the log.
    """

    def __init__(self, room: str, sleep: Sleep, *, last_attempts: int) -> None:
        self._room = room
        self._sleep = sleep
        self._last_attempts = last_attempts
        self.stopping: asyncio.Event | None = None

    async def log(self, what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Until it succeeds.

        Raises:
            Retryable: the service is stopping, and it still failed.
        """
        return await self._until(what, attempt, Retryable)

    async def workers(self, what: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Until it succeeds; workers that fail lose nothing, whatever it was that failed.

        Raises:
            Retryable: as `log`.
        """
        try:
            return await self._until(what, attempt, Exception)
        except Exception as error:
            raise Retryable(f"the workers failed: {error!r}") from error

    async def _until(
        self, what: str, attempt: Callable[[], Awaitable[_T]], passing: type[Exception]
    ) -> _T:
        wait, last = 0.0, 0
        while True:
            try:
                return await attempt()
            except passing as error:
                last += self.stopping is None or self.stopping.is_set()
                if last >= self._last_attempts:
                    raise
                if not wait:
                    _log.warning("%s cannot %s now and tries again: %r", self._room, what, error)
            # The last attempts follow each other quickly: a stop has a deadline.
            wait = FIRST_WAIT if not wait or last == 1 else min(LONGEST_WAIT, 2 * wait)
            await self._sleep(wait)
