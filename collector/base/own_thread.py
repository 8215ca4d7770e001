"""One thread that does work in order. Where it ends its callers hear of it; an executor's would wait for ever."""

import asyncio
import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from collector.base.thread_callers import ThreadCallers
from collector.base.watch import PartEnded

_T = TypeVar("_T")
_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class OwnThread:
    """Made on the event loop; ended by `close`."""

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._callers = ThreadCallers(f"the thread `{name}`", PartEnded)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do the work in the thread, after all that was given before. Raises PartEnded: the thread has ended."""
        return await self._callers.answered(lambda future: self._queue.put((work, future)))

    async def close(self) -> None:
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            while (given := self._queue.get()) is not None:
                self._do(*given)
        except BaseException as error:  # noqa: BLE001 - else its callers would wait for ever
            self._callers.ended(error)

    def _do(self, work: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        try:
            answer = partial(future.set_result, work())
        except Exception as error:  # noqa: BLE001 - its caller's
            answer = partial(future.set_exception, error)
        self._callers.in_loop(lambda: None if future.done() else answer())
