"""A part that ends before the process does is seen, however it ends."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from collector.api.feed import OwnThread
from collector.base import watch
from collector.base.lifecycle import Stages
from collector.base.watch import PartEnded


async def returns(_: asyncio.Event) -> None:
    return


async def is_cancelled(_: asyncio.Event) -> None:
    raise asyncio.CancelledError


async def serves(stopping: asyncio.Event) -> None:
    await stopping.wait()


@pytest.mark.parametrize("run", [returns, is_cancelled])
async def test_a_stage_that_ends_before_its_stop_ends_the_process(
    run: Callable[[asyncio.Event], Awaitable[None]],
) -> None:
    async def live() -> None:
        async with Stages() as stages:
            stages.start("health", serves)
            stages.start("score", run)
            await stages.until(asyncio.Event())

    with pytest.raises(ExceptionGroup) as group:
        await live()

    (error,) = group.value.exceptions
    assert isinstance(error, PartEnded)
    assert str(error) == "`score` has ended"


async def test_stages_that_are_stopped_end_quietly() -> None:
    stopping = asyncio.Event()
    stopping.set()
    async with Stages() as stages:
        stages.start("score", serves)
        await stages.until(stopping)
        await stages.stop("score")


class _Part:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    async def watch(self) -> None:
        await watch.ends([self._task])


async def test_the_error_that_ended_a_part_is_reported() -> None:
    async def fails() -> None:
        raise KeyError("which")

    part = asyncio.create_task(fails(), name="worker 0")
    with pytest.raises(ExceptionGroup) as group:
        await watch.watch(_Part(part), asyncio.Event())

    (error,) = group.value.exceptions
    assert isinstance(error, PartEnded)
    assert isinstance(error.__cause__, KeyError)


async def test_a_part_that_is_well_is_watched_until_the_stop() -> None:
    part = asyncio.create_task(serves(asyncio.Event()))
    stopping = asyncio.Event()
    asyncio.get_running_loop().call_soon(stopping.set)

    await watch.watch(_Part(part), stopping)

    assert not part.done()
    part.cancel()


async def test_a_thread_of_its_own_works_in_order_and_tells_errors() -> None:
    thread = OwnThread("index")
    done: list[int] = []

    def fails() -> None:
        raise KeyError("which")

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(thread.run(partial(done.append, number)))
    with pytest.raises(KeyError):
        await thread.run(fails)
    name = await thread.run(lambda: threading.current_thread().name)
    await thread.close()

    assert done == [*range(5)]
    assert name == "index"


async def test_who_waits_for_a_thread_that_ends_and_who_comes_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    thread = OwnThread("index")

    def ends() -> None:
        raise SystemExit

    first, second = (asyncio.create_task(thread.run(work)) for work in (ends, lambda: None))
    for each in (first, second, asyncio.create_task(thread.run(lambda: None))):
        with pytest.raises(PartEnded, match="`index` has ended"):
            await each
    with pytest.raises(PartEnded):
        await thread.run(lambda: None)
    await thread.close()

    assert "The thread `index` has ended." in caplog.text
