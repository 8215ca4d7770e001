"""Who waits on the event loop for a thread: each is answered, also where an error ends the thread."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from collector.base.watch import PartEnded

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class ThreadCallers:
    """The callers of one thread. `refusal`: makes of a message what its callers are refused with."""

    def __init__(self, what: str, refusal: Callable[[str], Exception]) -> None:
        self._message = f"{what} has ended"
        self._refusal = refusal
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[Any]] = set()
        self._end: asyncio.Future[BaseException] = self._loop.create_future()
        """The error that ended the thread."""

    async def answered(self, submit: Callable[[asyncio.Future[_T]], None]) -> _T:
        """What the future comes to that `submit` gives to the thread."""
        if self._end.done():
            raise self._refused()
        future: asyncio.Future[_T] = self._loop.create_future()
        self._waiting.add(future)
        try:
            submit(future)
            return await future
        finally:
            self._waiting.discard(future)

    async def watch(self) -> None:
        error = await asyncio.shield(self._end)
        raise PartEnded(self._message) from error

    def in_loop(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and every caller with it
            self._loop.call_soon_threadsafe(call)

    def ended(self, error: BaseException) -> None:
        """This error ends the thread: who waits, and who comes, is refused; from the thread."""
        self.in_loop(partial(self._refuse_all, error))

    def _refuse_all(self, error: BaseException) -> None:
        _log.critical("%s.", self._message.capitalize(), exc_info=error)
        self._end.set_result(error)
        for each in self._waiting:
            if not each.done():
                each.set_exception(self._refused())

    def _refused(self) -> Exception:
        refused = self._refusal(self._message)
        refused.__cause__ = self._end.result()
        return refused
