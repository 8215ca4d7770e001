"""Rooms that only show are made again after a failure, counted and named, and never end the process."""

import asyncio
import errno
import logging
import sqlite3

import lmdb
import pytest

from collector.base.errors import ConfigError, LogUnavailable
from collector.base.supervisor import Supervisor, reason_of
from collector.base.telemetry import Telemetry
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


async def test_what_only_the_user_can_put_right_ends_the_room() -> None:
    run = Supervisor(Telemetry()).keep("api", lambda: Room(ConfigError("no such topic")).run)

    with pytest.raises(ConfigError):
        await run(asyncio.Event())


async def test_a_room_that_fails_at_its_stop_is_not_made_again() -> None:
    room = Room(ValueError("late"))
    stopping = asyncio.Event()
    stopping.set()

    await Supervisor(Telemetry()).keep("api", lambda: room.run)(stopping)

    assert room.starts == 1


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
        (
            ExceptionGroup("all", [OSError(errno.EIO, "x"), ExceptionGroup("in", [KeyError()])]),
            "bug",
        ),
    ],
)
def test_the_reason_of_a_failure(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
