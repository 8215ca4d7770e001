"""Which requests are refused although there is room: those that could not be written, or not scored in time.

    the log is full   nothing is read for a moment after the log said so; then one request tries
    scoring is behind the share of requests that is taken falls with the age of the oldest trace that waits for its
                      score:    1 up to half of the limit, 1/2 at the limit, 1/10 from 1.4 times the limit on

The share has no memory: what is taken follows what is scored, and a service that keeps up takes everything. It never
falls to nothing, so that scoring that hangs is not a reason for a sender to hear a refusal for good.

A trace is taken whole or refused whole where its batches allow it: a request whose traces are all on the same side of
the share is decided by their ids, so that those of one trace meet the same answer; any other, and one that is
compressed, is decided by itself. The sides are dealt again from time to time.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from zlib import crc32

from collector.base.clock import Clock
from collector.base.errors import LogFull, Undecodable
from collector.otlp.walk import trace_ids
from collector.receiver.answers import Behind

RATE = 32 << 10  # bytes a second
PATIENCE = 5.0  # seconds that a body may be behind `RATE`


@dataclass(slots=True)
class Pace:
    """By when the next bytes of a body must come.

    What comes buys time at `RATE`, but never more than `PATIENCE` from now: a body that came fast and then stalls
    ends as soon as one that never came.
    """

    due: float  # seconds on the clock of `took`; a body without more bytes by then is too slow
    end: float  # when the whole body must be there, however fast it comes

    @classmethod
    def begin(cls, now: float, *, timeout: float) -> Pace:
        """A body that begins now and may take `timeout` seconds."""
        end = now + timeout
        return cls(min(now + PATIENCE, end), end)

    def took(self, size: int, now: float) -> None:
        self.due = min(self.due + size / RATE, now + PATIENCE, self.end)


@asynccontextmanager
async def ending(pace: Pace) -> AsyncGenerator[None]:
    """End what is inside once `pace` is due, with one timer, however often that moves.

    Raises TimeoutError: it is due.
    """
    loop = asyncio.get_running_loop()
    timer: TimerHandle | None = None

    def check() -> None:
        nonlocal timer
        if pace.due > loop.time():
            timer = loop.call_at(pace.due, check)
        else:
            deadline.reschedule(pace.due)

    async with asyncio.timeout(None) as deadline:
        check()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()


LEAST = 0.1  # the share that is always taken
LOOK_EVERY = 0.5  # seconds between two looks at how far scoring is behind
FULL_FOR = 0.25  # seconds in which nothing is tried after the log was full
DEALT_FOR = 300.0  # seconds for which a trace stays on its side: as long as collectors try again
_LOOKED_AT = 64  # spans of a request whose traces are compared
_ONE = 1 << 32  # a CRC-32 as a share of 1


def share(lag: float, limit: float) -> float:
    """What part of the requests is taken when the oldest trace has waited `lag` seconds for its score."""
    return max(LEAST, min(1.0, 1.5 - lag / limit))


@dataclass(slots=True, kw_only=True)
class Overload:
    """Owned by one event loop."""

    clock: Clock
    limit: float | None = None  # `receiver.max_score_lag`
    behind: Callable[[], float] | None = None
    """Seconds that the oldest closed trace has waited for its score; None: it is not known here."""
    _lag: float = 0.0
    _looked: float = float("-inf")
    _full_until: float | None = None
    _credit: float = 0.0

    def before_reading(self) -> None:
        """A request has come; nothing of it is read yet. Raises LogFull: the log was full a moment ago."""
        if self._full_until is None:
            return
        now = self.clock()
        if self._full_until - FULL_FOR <= now < self._full_until:
            raise LogFull("the log was full a moment ago")
        self._full_until = now + FULL_FOR  # this one tries, the others wait for what it meets

    def before_splitting(self, body: bytes) -> None:
        """The request has been read, as it was sent. Raises Behind: scoring is too far behind to take it."""
        if self.limit is None or self.behind is None:
            return
        now = self.clock()
        if not 0 <= now - self._looked < LOOK_EVERY:
            self._looked = now
            self._lag = self.behind()
        part = share(self._lag, self.limit)
        if part < 1 and not self._is_taken(body, part, now):
            raise Behind(self._lag, self.limit)

    def written(self) -> None:
        self._full_until = None

    def full(self) -> None:
        self._full_until = self.clock() + FULL_FOR

    def _is_taken(self, body: bytes, part: float, now: float) -> bool:
        sides = _sides(body, part, int(now // DEALT_FOR))
        if len(sides) == 1:
            return sides.pop()
        self._credit += part
        if self._credit < 1:
            return False
        self._credit -= 1
        return True


def _sides(body: bytes, part: float, deal: int) -> set[bool]:
    """On which sides of the share the request's traces are; empty: its ids cannot be seen without more work."""
    seed = crc32(deal.to_bytes(8, "big"))
    try:
        ids = set(islice(trace_ids(body), _LOOKED_AT))
    except Undecodable:
        return set()
    return {crc32(each, seed) < part * _ONE for each in ids}
