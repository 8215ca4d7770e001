"""Records whose traces the workers score: what has come of them, in the order in which they began.

begin -> come: the first ones, as far as they have come
once none comes for a while: whatever has come, until all that were there have
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import takewhile
from typing import Any, Generic, TypeVar

from collector.scoring.backlog import Waiting

T = TypeVar("T")


class UnderWay(Generic[T]):
    """Owned by one task, which begins them and takes what comes: a `T` for each."""

    def __init__(self) -> None:
        """Nothing is."""
        self._tasks: dict[asyncio.Task[T], Waiting] = {}
        self._slow: set[asyncio.Task[T]] = set()
        """Those that were there when none had come for a while."""

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def may_be_passed(self) -> bool:
        """Whether other records may pass these: none came for a while, and not all that were there have come since."""
        return bool(self._slow)

    def begin(self, each: Waiting, scoring: Coroutine[Any, Any, T]) -> None:
        """The record's trace is scored from now on."""
        self._tasks[asyncio.create_task(scoring)] = each

    async def come(self, within: float | None) -> list[tuple[Waiting, T]]:
        """What has come; it is not under way any more. Nothing: no outcome came within so many seconds.

        There must be one under way. An error of one's scoring is raised, and all stay under way.
        """
        first = next(iter(self._tasks))
        awaited = self._tasks if self._slow else (first,)
        await asyncio.wait(awaited, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if first.done() and not self._slow:
            done = [*takewhile(asyncio.Task[T].done, self._tasks)]
        else:
            done = [task for task in self._tasks if task.done()]
        if not done:
            self._slow |= self._tasks.keys()
        come = [(task, task.result()) for task in done]
        return [(self._taken(task), scored) for task, scored in come]

    async def cancel(self, chosen: Callable[[Waiting], bool] = lambda _: True) -> None:
        """End the scoring of some: what they would say is asked again."""
        tasks = [task for task, each in self._tasks.items() if chosen(each)]
        for task in tasks:
            self._taken(task)
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # it does not matter any more

    def _taken(self, task: asyncio.Task[T]) -> Waiting:
        self._slow.discard(task)
        return self._tasks.pop(task)
