"""What may be asked of judges: a sample of the sessions, calls per minute, USD per UTC day. Pure."""

from __future__ import annotations

import hashlib
from collections import deque

DAY = 86_400.0
MINUTE = 60.0
_HASHES = 1 << 64


def in_sample(key: bytes, share: float) -> bool:
    """Whether the session of this key is judged; all are with a share of 1, none with 0.

    By a hash of the key, so that every process and every replay agrees.
    """
    drawn = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) / _HASHES
    return drawn < share


class Budget:
    """The spend of one process: reserved before each call, settled after it.

    Times are unix seconds. With `usd_per_day` None only the rate is limited.
    """

    def __init__(self, *, usd_per_day: float | None, calls_per_minute: int) -> None:
        self._limit = usd_per_day
        self._rate = calls_per_minute
        self._calls: deque[float] = deque()
        self._day = -1
        self._spent = 0.0
        self._reserved = 0.0
        self.share = 1.0
        """Of the whole budget: owned partitions / all partitions."""

    @property
    def limit(self) -> float | None:
        """USD that this process may spend in a day."""
        return None if self._limit is None else self._limit * self.share

    def restore(self, time: float, *, calls: int, usd: float, now: float) -> None:
        """Count what a verdict in the log cost; only the UTC day of `now` counts."""
        self._roll_over(now)
        if _day(time) == self._day:
            self._spent += usd
        if time > now - MINUTE:
            self._calls.extend([time] * min(calls, self._rate))

    def wait(self, now: float) -> float:
        """Seconds until another call may be made; 0: now."""
        while self._calls and not now - MINUTE < self._calls[0] <= now:
            self._calls.popleft()
        if len(self._calls) < self._rate:
            return 0.0
        return self._calls[len(self._calls) - self._rate] + MINUTE - now

    def reserve(self, now: float, usd: float) -> bool:
        """Reserve at most `usd` for a call; returns False, reserving nothing, if less than that remains."""
        self._roll_over(now)
        limit = self.limit
        if limit is not None and self._spent + self._reserved + usd > limit:
            return False
        self._reserved += usd
        self._calls.append(now)
        return True

    def settle(self, now: float, *, reserved: float, usd: float) -> None:
        """The call is over and cost `usd`; its reservation is released."""
        self._roll_over(now)
        self._reserved = max(0.0, self._reserved - reserved)
        self._spent += usd

    def remaining(self, now: float) -> float | None:
        """USD that may still be spent today; None: without limit."""
        self._roll_over(now)
        limit = self.limit
        return None if limit is None else max(0.0, limit - self._spent - self._reserved)

    def _roll_over(self, now: float) -> None:
        if _day(now) != self._day:
            self._day = _day(now)
            self._spent = 0.0


def _day(time: float) -> int:
    return int(time // DAY)
