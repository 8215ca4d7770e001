"""Rooms that only show (index, sinks, metrics, judge, forward) never end what takes in and keeps.

make a room -> run it -> it failed: count, say once, wait -> make another, which reads on from its commit
"""

import asyncio
import errno
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, cast

import lmdb

from collector.base.errors import ConfigError, Retryable
from collector.base.families import RuntimeFamilies
from collector.base.lifecycle import Run
from collector.base.retry import Backoff, Sleep
from collector.base.sqlite_file import is_full, is_of_disk
from collector.base.telemetry import Telemetry

Reason = Literal["disk", "io", "bug"]
"""disk: full; io: a disk or a peer that fails; bug: an error that the room does not foresee."""
LONGEST = 60.0  # seconds between two starts at most. A room that ran longer begins again with the shortest wait.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_log = logging.getLogger(__name__)


@dataclass
class Supervisor:
    """Makes a room again, for as long as the process runs, whenever it fails; waits grow from 0.5 to 60 seconds.

    `telemetry`: for `spanwise_room_failures_total`. `sleep`: `asyncio.sleep`, or a test's. `monotonic`: seconds that
    never jump.
    """

    telemetry: Telemetry
    sleep: Sleep = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic

    def keep(self, room: str, make: Callable[[], Run]) -> Run:
        """The stage that runs what `make` returns, a new one after each failure, until its stop.

        A ConfigError ends the stage: only the user can put it right.
        """

        async def run(stopping: asyncio.Event) -> None:
            backoff = Backoff(first=0.5, longest=LONGEST, sleep=self.sleep)
            said: Reason | None = None
            while True:
                began = self.monotonic()
                try:
                    return await make()(stopping)
                except Exception as error:
                    if any(isinstance(each, ConfigError) for each in leaves(error)):
                        raise
                    if self.monotonic() - began > LONGEST:
                        backoff.reset()
                        said = None
                    said = self._note(room, error, said)
                if stopping.is_set():
                    return None
                await backoff.wait(stopping)

        return run

    def _note(self, room: str, error: Exception, said: Reason | None) -> Reason:
        """Count the failure; name it unless the one before had the same reason."""
        reason = reason_of(error)
        RuntimeFamilies(self.telemetry).room_failures.labels(room, reason).inc()
        if reason != said:
            cause = next(leaves(error))
            _log.error(
                "Room `%s` failed (%s) and is started again until it works: %r",
                room,
                reason,
                cause,
                exc_info=error if reason == "bug" else None,
            )
        return reason


def reason_of(error: BaseException) -> Reason:
    """What kind of failure this is; of several at once, the least harmless."""
    reasons = {_reason(each) for each in leaves(error)}
    return "bug" if "bug" in reasons else "disk" if "disk" in reasons else "io"


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, whatever its depth; an error that is not a group is its only leaf."""
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
        yield from leaves(each)


def _reason(error: BaseException) -> Reason:
    if isinstance(error, Retryable):
        cause = error.__cause__
        return "io" if cause is None or _reason(cause) == "bug" else _reason(cause)
    if isinstance(error, OSError):
        return "disk" if error.errno in _FULL else "io"
    if isinstance(error, sqlite3.Error) and is_of_disk(error):
        return "disk" if is_full(error) else "io"
    if isinstance(error, lmdb.Error):
        return "disk" if isinstance(error, lmdb.DiskError | lmdb.MapFullError) else "io"
    return "bug"
