"""Bounds on what arrives without bound: label values, and ids that were met. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

MAX_AGENTS = 64
"""(service, agent) pairs with a name of their own."""
MAX_EVALUATORS = 64
IDLE = 86400.0
"""Seconds without use after which a value may be evicted for another."""


class Admission(NamedTuple, Generic[K]):
    """Whether a value keeps its name, and the value that was evicted for it, if any."""

    admitted: bool
    evicted: K | None


class LabelLimit(Generic[K]):
    """At most `limit` values keep their name; one that was not used for `idle` seconds of log time can be evicted."""

    def __init__(self, limit: int, *, idle: float = IDLE) -> None:
        self._limit = limit
        self._idle = idle
        self._used: dict[K, float] = {}

    def admit(self, value: K, now: float) -> Admission[K]:
        """Admit the value if it is known, if there is room, or in place of an idle one."""
        if value in self._used:
            self._used[value] = max(self._used[value], now)
            return Admission(True, None)
        evicted = None
        if len(self._used) >= self._limit:
            evicted = min(self._used, key=lambda each: self._used[each])
            if now - self._used[evicted] < self._idle:
                return Admission(False, None)
            del self._used[evicted]
        self._used[value] = now
        return Admission(True, evicted)


class RecentIds:
    """The newest `limit` ids; the one that was not met for longest is forgotten first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def add(self, id_: str) -> bool:
        """Remember the id; True when it is new."""
        if id_ in self._ids:
            self._ids.move_to_end(id_)
            return False
        if len(self._ids) >= self._limit:
            self._ids.popitem(last=False)
        self._ids[id_] = None
        return True

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids, in the order in which they would be forgotten."""
        return tuple(self._ids)

    def __len__(self) -> int:
        return len(self._ids)
