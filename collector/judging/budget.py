"""What may be asked of judges: a sample of the sessions, calls per minute, USD per UTC day. Pure.

One service may use no more than its share of calls and USD while another, which has used less than its own, waits.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterable

DAY = 86_400.0
MINUTE = 60.0
LOOK_AGAIN = 0.25
"""Seconds after which a service above its share looks again whether others still wait."""
MAX_SERVICES = 1024
"""Services whose USD are counted apart. Above it the one that spent least is forgotten; the sum stays exact."""
MORE = 0.5
"""The share of the day's USD and of a minute's calls that sessions beyond the sample (`judge.more`) may use."""
_HASHES = 1 << 64  # how many values the eight bytes of a digest have


def in_sample(key: bytes, share: float) -> bool:
    """Whether the session of this key is judged; all are with a share of 1, none with 0.

    By a hash of the key, so that every process and every replay agrees.
    """
    drawn = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) / _HASHES
    return drawn < share


class Budget:
    """The spend of one process: reserved before each call, settled after it.

    Times are unix seconds. With `usd_per_day` None only the rate is limited. `service_share`: what one service may use
    of both while others wait (`fairness.share`), above 0, at most 1.
    """

    def __init__(
        self, *, usd_per_day: float | None, calls_per_minute: int, service_share: float = 1.0
    ) -> None:
        self._limit = usd_per_day
        self._rate = calls_per_minute
        self._service_share = service_share
        self._calls: deque[tuple[float, str, bool]] = deque()
        self._more_calls = 0  # of these, those for sessions beyond the sample
        self._more_usd = 0.0  # USD of the day for such sessions, spent and reserved
        self._calls_of: Counter[str] = Counter()
        self._day = -1
        self._spent = 0.0
        self._reserved = 0.0
        self._usd_of: dict[str, float] = {}  # USD of the day, spent and reserved, by service
        self.share = 1.0  # of the whole budget: owned partitions / all partitions
        self._waiting: dict[object, frozenset[str]] = {}
        self._restored: dict[
            int, int
        ] = {}  # by partition, the offset up to which verdicts are counted

    @property
    def limit(self) -> float | None:
        """USD that this process may spend in a day."""
        return None if self._limit is None else self._limit * self.share

    @property
    def waiting(self) -> frozenset[str]:
        return frozenset(each for services in self._waiting.values() for each in services)

    def waits(self, room: object, services: frozenset[str]) -> None:
        self._waiting[room] = services

    def is_restored(self, partition: int, offset: int) -> bool:
        """Whether the verdict at this offset was counted before; it is from now on."""
        if offset <= self._restored.get(partition, -1):
            return True
        self._restored[partition] = offset
        return False

    def restore(
        self, time: float, service: str, *, calls: int, usd: float, now: float, more: bool = False
    ) -> None:
        """Count what a verdict in the log cost; only the UTC day of `now` counts."""
        self._roll_over(now)
        if _day(time) == self._day:
            self._spent += usd
            self._count_usd(service, usd, more=more)
        if time > now - MINUTE:
            for _ in range(min(calls, self._rate)):
                self._count_call(time, service, more=more)

    def wait(
        self, now: float, service: str, others: Iterable[str] = (), *, more: bool = False
    ) -> float:
        """Seconds until the service may ask again for a call; 0: the call may be made now.

        `service`: whose subject the call is about. `others`: services whose subjects are under way.
        """
        self._forget_calls(now)
        if len(self._calls) >= self._rate:
            return self._calls[len(self._calls) - self._rate][0] + MINUTE - now
        if more and self._more_calls >= max(1, int(self._rate * MORE)):
            return LOOK_AGAIN
        if self.is_within_share(now, service):
            return 0.0
        is_contested = any(
            self.is_within_share(now, each) for each in {*others, *self.waiting} - {service}
        )
        return LOOK_AGAIN if is_contested else 0.0

    def is_within_share(self, now: float, service: str) -> bool:
        """Whether the service has used less than its share of the last minute's calls and of the day's USD."""
        self._roll_over(now)
        self._forget_calls(now)
        if self._calls_of[service] >= max(1, int(self._rate * self._service_share)):
            return False
        limit = self.limit
        return limit is None or self._usd_of.get(service, 0.0) < limit * self._service_share

    def reserve(self, now: float, usd: float, service: str, *, more: bool = False) -> bool:
        """Reserve at most `usd` for a call; returns False, reserving nothing, if less than that remains.

        `more`: it is about a session beyond the sample, for which less remains.
        """
        self._roll_over(now)
        limit = self.limit
        if limit is not None and self._spent + self._reserved + usd > limit:
            return False
        if more and limit is not None and self._more_usd + usd > MORE * limit:
            return False
        self._reserved += usd
        self._count_usd(service, usd, more=more)
        self._count_call(now, service, more=more)
        return True

    def settle(
        self, now: float, service: str, *, reserved: float, usd: float, more: bool = False
    ) -> None:
        """The call is over and cost `usd`; its reservation is released."""
        self._roll_over(now)
        self._reserved = max(0.0, self._reserved - reserved)
        self._spent += usd
        self._count_usd(service, usd - reserved, more=more)

    def remaining(self, now: float) -> float | None:
        """USD that may still be spent today; None: without limit."""
        self._roll_over(now)
        limit = self.limit
        return None if limit is None else max(0.0, limit - self._spent - self._reserved)

    def _count_call(self, time: float, service: str, *, more: bool) -> None:
        self._calls.append((time, service, more))
        self._more_calls += more
        self._calls_of[service] += 1

    def _count_usd(self, service: str, usd: float, *, more: bool) -> None:
        if more:
            self._more_usd = max(0.0, self._more_usd + usd)
        self._usd_of[service] = max(0.0, self._usd_of.get(service, 0.0) + usd)
        if len(self._usd_of) > MAX_SERVICES:
            del self._usd_of[min(self._usd_of, key=lambda each: self._usd_of[each])]

    def _forget_calls(self, now: float) -> None:
        """Forget the calls that are a minute old, or that a clock which was set back puts into the future."""
        while self._calls and not now - MINUTE < self._calls[0][0] <= now:
            _, service, more = self._calls.popleft()
            self._more_calls -= more
            self._calls_of[service] -= 1
            if not self._calls_of[service]:
                del self._calls_of[service]

    def _roll_over(self, now: float) -> None:
        if _day(now) != self._day:
            self._day = _day(now)
            self._spent = 0.0
            self._more_usd = 0.0
            self._usd_of.clear()


def _day(time: float) -> int:
    return int(time // DAY)
