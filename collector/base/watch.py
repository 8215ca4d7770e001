"""Parts of the process that run for as long as it does: one that ends before is seen, and ends the process."""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Protocol, runtime_checkable


class PartEnded(RuntimeError):
    """A task or thread that the process needs has ended; only another process has it again."""


@runtime_checkable
class Watched(Protocol):
    async def watch(self) -> None:
        """Wait until one of them has ended. Raises PartEnded: that one; the error that ended it is the cause."""
        ...


async def until(stopping: asyncio.Event, parts: Collection[asyncio.Task[None]]) -> None:
    """Wait for `stopping`. Raises PartEnded: a part has returned, failed or been cancelled before."""
    waiting = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({waiting, *parts}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if not stopping.is_set():
        raise_ended(parts)


async def together(name: str, stopping: asyncio.Event, *runs: Coroutine[Any, Any, None]) -> None:
    """Run them, in tasks of this name, until each has ended behind `stopping`.

    Raises PartEnded: one has returned or been cancelled before.
    """
    async with asyncio.TaskGroup() as group:
        await until(stopping, [group.create_task(run, name=name) for run in runs])


async def ends(parts: Collection[asyncio.Task[None]]) -> None:
    """Wait until one of the parts has ended; forever where there is none. Raises PartEnded: that one."""
    await until(asyncio.Event(), parts)


def raise_ended(parts: Collection[asyncio.Task[None]]) -> None:
    """Raise `PartEnded` for the first part that has ended."""
    for part in parts:
        if part.done():
            error = None if part.cancelled() else part.exception()
            raise PartEnded(f"`{part.get_name()}` has ended") from error


async def watch(part: Watched, stopping: asyncio.Event) -> None:
    """The stage that watches a part until `stopping` is set. Raises PartEnded: see `Watched`."""
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(part.watch())
        await stopping.wait()
        watching.cancel()
