"""Trying again after a failure that may pass: how long to wait (`Backoff`) and how often (`Retry`)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from collector.base.clock import Clock
from collector.base.errors import Retryable

Sleep = Callable[[float], Awaitable[None]]  # `asyncio.sleep`, or the sleep of a test

SAID_AGAIN = 60.0  # seconds after which a failure that lasts is logged again
STEADY = 5.0  # seconds of failures after which a success ends the outage; after shorter ones, seconds of successes
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Backoff:
    """Waits of `first`, 2 * `first`, 4 * `first` ... seconds, at most `longest`; from `first` again after `reset`."""

    def __init__(
        self, *, first: float = 0.2, longest: float = 30.0, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._first = first
        self._longest = longest
        self._sleep = sleep
        self._next = first

    def next(self) -> float:
        """The seconds to wait now; the next call returns twice as many."""
        delay, self._next = self._next, min(self._longest, self._next * 2)
        return delay

    def reset(self) -> None:
        self._next = self._first

    async def sleep(self, *, at_least: float = 0.0) -> None:
        await self._sleep(max(self.next(), at_least))

    async def wait(self, stopping: asyncio.Event, *, at_least: float = 0.0) -> None:
        """Sleep for `next()` seconds, for `at_least` so many, or until `stopping` is set."""
        async with asyncio.TaskGroup() as group:
            waits = (
                group.create_task(self.sleep(at_least=at_least)),
                group.create_task(stopping.wait()),
            )
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()


@dataclass(eq=False)
class Retry:
    """Repeats what a room asks of its log and its workers until it succeeds.

    A failure is logged when it begins, every SAID_AGAIN seconds while it lasts, and when it is over. What fails and
    succeeds by turns, as a broker does that refuses a right, is one outage. Waits grow from
    0.1 to 5 seconds. Once `stopping` is set, `last_attempts` attempts are left, in quick succession; without an event,
    these are all the attempts.

    `name`: of the room, for the log. `last_attempts`: at least one.
    """

    name: str
    sleep: Sleep = asyncio.sleep
    last_attempts: int = 1
    monotonic: Callable[[], float] = time.monotonic
    stopping: asyncio.Event | None = field(default=None, init=False)
    _outages: dict[str, "_Outage"] = field(default_factory=dict[str, "_Outage"], init=False)

    async def log(self, action: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat an operation of the log until it succeeds.

        Raises Retryable: the service is stopping and the last attempt failed.
        """
        return await self._until_it_succeeds(action, attempt, Retryable)

    async def workers(self, action: str, attempt: Callable[[], Awaitable[_T]]) -> _T:
        """Repeat an operation of the workers until it succeeds: whatever error they raise, it loses nothing.

        Raises Retryable: the service is stopping and the last attempt failed.
        """
        try:
            return await self._until_it_succeeds(action, attempt, Exception)
        except Exception as error:
            raise Retryable(f"the workers failed: {error!r}") from error

    async def _until_it_succeeds(
        self, action: str, attempt: Callable[[], Awaitable[_T]], passing: type[Exception]
    ) -> _T:
        backoff = Backoff(first=0.1, longest=5.0, sleep=self.sleep)
        outage = self._outages.get(action)
        if outage is None:
            what = f"{self.name} cannot {action}"
            outage = self._outages[action] = _Outage(what, self.monotonic)
        failures_at_stop = 0
        while True:
            try:
                result = await attempt()
            except passing as error:
                failures_at_stop += self.stopping is None or self.stopping.is_set()
                if failures_at_stop >= self.last_attempts:
                    raise
                outage.goes_on(error)
            else:
                outage.ends()
                return result
            if failures_at_stop == 1:
                backoff.reset()  # a stop has a deadline
            if self.stopping is None or failures_at_stop:
                await backoff.sleep()
            else:
                await backoff.wait(self.stopping)


class Seldom:
    """Whether a line in the log is due of what may happen at any rate: one in SAID_AGAIN seconds. All of it is counted.

    `clock`: seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said = float("-inf")
        self._unsaid = 0

    def due(self) -> int:
        """How often it has happened since the line before, this time included; 0: no line now."""
        self._unsaid += 1
        now = self._clock()
        if 0 <= now - self._said < SAID_AGAIN:
            return 0
        self._said, times, self._unsaid = now, self._unsaid, 0
        return times


@dataclass(slots=True)
class _Outage:
    """What is logged of a failure that is waited out: its begin, an error every SAID_AGAIN seconds, its end."""

    _what: str
    _monotonic: Callable[[], float]
    _began: float | None = None
    _failing: float | None = None  # since when it fails without a success in between
    _well: float = 0.0  # since when it succeeds again
    _said: float = 0.0

    def goes_on(self, error: Exception) -> None:
        """It failed, for the first time or once more."""
        now = self._monotonic()
        if self._failing is None:
            self._failing = now
        if self._began is None:
            self._began = self._said = now
            _log.warning("%s now and tries again: %r", self._what, error)
        elif now - self._said >= SAID_AGAIN:
            self._said = now
            _log.warning("%s for %.0f s now: %r", self._what, now - self._began, error)

    def ends(self) -> None:
        if self._began is None:
            return
        now = self._monotonic()
        lasted = 0.0 if self._failing is None else now - self._failing
        if self._failing is not None:
            self._failing, self._well = None, now
        if max(lasted, now - self._well) >= STEADY:
            _log.info("Over after %.1f s: %s.", self._well - self._began, self._what)
            self._began = None
