"""A room or part that ends before the process does is seen, counted, and made again where it only shows."""

import asyncio
import errno
import logging
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from functools import partial

import lmdb
import pytest

from collector.api.feed import OwnThread
from collector.base import watch
from collector.base.errors import ConfigError, LogUnavailable
from collector.base.lifecycle import Stages
from collector.base.supervisor import Supervisor, reason_of
from collector.base.telemetry import Telemetry
from collector.base.watch import PartEnded
from tests.support.table import for_each


class Room:
    """Fails with these errors in turn, one per start, then runs until its stop."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.starts = 0
        self.works = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        self.starts += 1
        if self.failures:
            raise self.failures.pop(0)
        self.works.set()
        await stopping.wait()


async def kept(room: Room) -> tuple[Telemetry, list[float]]:
    """Run the room under a supervisor until it works, then stop it; returns the waits between its starts."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    telemetry = Telemetry()
    stopping = asyncio.Event()
    run = Supervisor(telemetry, sleep=sleep, monotonic=lambda: 0.0).keep("api", lambda: room.run)
    async with asyncio.timeout(5):
        running = asyncio.ensure_future(run(stopping))
        await room.works.wait()
        stopping.set()
        await running
    return telemetry, waits


def failures(telemetry: Telemetry, reason: str) -> float | None:
    labels = {"room": "api", "reason": reason}
    return telemetry.registry.get_sample_value("spanwise_room_failures_total", labels)


async def test_a_room_is_made_again_with_growing_waits() -> None:
    room = Room(*(OSError(errno.ENOSPC, "full") for _ in range(9)))

    telemetry, waits = await kept(room)

    assert room.starts == 10
    assert waits == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    assert failures(telemetry, "disk") == 9


async def test_a_failure_is_named_once_per_reason_and_only_bugs_have_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    full = lmdb.DiskError("mdb_put: No space left on device")

    with caplog.at_level(logging.ERROR):
        await kept(Room(full, full, full, ValueError("unforeseen"), ValueError("unforeseen")))

    assert ["No space left" in each.getMessage() for each in caplog.records] == [True, False]
    assert [bool(each.exc_info) for each in caplog.records] == [False, True]


async def test_what_only_the_user_can_put_right_ends_the_room_and_so_does_a_failure_at_its_stop() -> (
    None
):
    late, stopping = Room(ValueError("late")), asyncio.Event()
    supervisor = Supervisor(Telemetry())

    with pytest.raises(ConfigError):
        await supervisor.keep("api", lambda: Room(ConfigError("no such topic")).run)(stopping)
    stopping.set()
    await supervisor.keep("api", lambda: late.run)(stopping)

    assert late.starts == 1


def of_sqlite(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    return error


@for_each(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "full"), "disk"),
        (OSError(errno.EIO, "broken"), "io"),
        (lmdb.DiskError("No space left on device"), "disk"),
        (lmdb.Error("Read-only file system"), "io"),
        (of_sqlite(sqlite3.SQLITE_FULL), "disk"),
        (of_sqlite(sqlite3.SQLITE_IOERR_WRITE), "io"),
        (of_sqlite(sqlite3.SQLITE_ERROR), "bug"),
        (sqlite3.ProgrammingError("Cannot operate on a closed database."), "bug"),
        (LogUnavailable("away"), "io"),
        (KeyError("x"), "bug"),
        (ExceptionGroup("a", [OSError(errno.EIO, "x"), ExceptionGroup("b", [KeyError()])]), "bug"),
    ],
)
def test_the_reason_of_a_failure(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason


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


async def test_a_part_that_is_well_is_watched_until_the_stop_and_stages_then_end_quietly() -> None:
    part = asyncio.create_task(serves(asyncio.Event()))
    stopping = asyncio.Event()
    asyncio.get_running_loop().call_soon(stopping.set)

    await watch.watch(_Part(part), stopping)
    async with Stages() as stages:
        stages.start("score", serves)
        await stages.until(stopping)
        await stages.stop("score")

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
