"""The bound on label values: so many keep their name, the others share `_other`. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

OTHER = "_other"
MAX_AGENTS = 64
"""(service, agent) pairs with a name of their own."""
MAX_EVALUATORS = 64
IDLE = 86400.0
"""Seconds after which an unused slot may be given to somebody else."""


class Place(NamedTuple, Generic[K]):
    """Whether there is a slot, and whose it was until now (None: nobody's)."""

    granted: bool
    evicted: K | None


class Slots(Generic[K]):
    """At most `limit` holders; when all are taken, one unused for 24 h of log time is given away."""

    def __init__(self, limit: int, *, idle: float = IDLE) -> None:
        self._limit = limit
        self._idle = idle
        self._used: dict[K, float] = {}

    def place(self, key: K, now: float) -> Place[K]:
        """Give the key its slot, or one that is free or idle."""
        if key in self._used:
            self._used[key] = max(self._used[key], now)
            return Place(True, None)
        evicted = None
        if len(self._used) >= self._limit:
            evicted = min(self._used, key=lambda each: self._used[each])
            if now - self._used[evicted] < self._idle:
                return Place(False, None)
            del self._used[evicted]
        self._used[key] = now
        return Place(True, evicted)
