"""The order in which subjects are judged: services in turn, each service's subjects in the order of the log. Pure."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SubjectQueue(Generic[T]):
    """Subjects that wait, by service, and how many of each service are under way.

    At most `concurrency` are under way. Those of services above their share may have to wait for a call in the middle:
    they hold no place against a service within its share, up to twice `concurrency` in all.
    """

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        """The service whose turn is next comes first."""
        self._count = 0
        self._under_way: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._count

    @property
    def contenders(self) -> frozenset[str]:
        """Services with a subject that waits and can still be begun."""
        is_full = self._under_way.total() >= 2 * self._concurrency
        return frozenset() if is_full else frozenset(self._waiting)

    def add(self, service: str, subject: T) -> None:
        self._waiting.setdefault(service, deque()).append(subject)
        self._count += 1

    def begin(self, is_within_share: Callable[[str], bool]) -> T | None:
        """The subject to begin now, if any: it is under way until `end`. Services within their share come first."""
        service = self._next(is_within_share)
        if service is None:
            return None
        self._under_way[service] += 1
        return self._pop(service)

    def end(self, service: str) -> None:
        self._under_way[service] -= 1
        if not self._under_way[service]:
            del self._under_way[service]

    def let_go(self, least: int) -> T | None:
        """Remove the oldest subject of the service with the most waiting, if these are at least `least`."""
        service = max(self._waiting, key=lambda each: len(self._waiting[each]), default=None)
        if service is None or len(self._waiting[service]) < least:
            return None
        return self._pop(service, keeps_turn=True)

    def drop(self, is_gone: Callable[[T], bool]) -> list[T]:
        """Remove the subjects that wait and are gone; returns them."""
        gone: list[T] = []
        for service, subjects in [*self._waiting.items()]:
            kept: deque[T] = deque()
            for each in subjects:
                (gone if is_gone(each) else kept).append(each)
            if kept:
                self._waiting[service] = kept
            else:
                del self._waiting[service]
        self._count -= len(gone)
        return gone

    def clear(self) -> None:
        self._waiting.clear()
        self._under_way.clear()
        self._count = 0

    def _next(self, is_within_share: Callable[[str], bool]) -> str | None:
        within = next(filter(is_within_share, self._waiting), None)
        under_way = self._under_way.total()
        if under_way < self._concurrency:
            return within if within is not None else next(iter(self._waiting), None)
        moving = sum(count for each, count in self._under_way.items() if is_within_share(each))
        has_place = moving < self._concurrency and under_way < 2 * self._concurrency
        return within if has_place else None

    def _pop(self, service: str, *, keeps_turn: bool = False) -> T:
        subjects = self._waiting[service]
        subject = subjects.popleft()
        self._count -= 1
        if not subjects:
            del self._waiting[service]
        elif not keeps_turn:
            self._waiting.move_to_end(service)
        return subject
