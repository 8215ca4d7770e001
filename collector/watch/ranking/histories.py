"""A bounded number of histories, by service and name. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Generic, TypeVar

H = TypeVar("H")


class Histories(Generic[H]):
    """At most `most` histories; of the service with the most of them, the one that was put longest ago is evicted.

    A service that makes up agents or tasks so evicts its own.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._services: dict[str, dict[str, H]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[str, str, H]]:
        for service, histories in self._services.items():
            for name, history in histories.items():
                yield service, name, history

    def get(self, service: str, name: str) -> H | None:
        """The history, if there is one."""
        return self._services.get(service, {}).get(name)

    def put(self, service: str, name: str, history: H) -> str | None:
        """Set the newest history; returns the name of the one that was evicted for it."""
        histories = self._services.setdefault(service, {})
        self._count += name not in histories
        histories.pop(name, None)
        histories[name] = history
        return self._evict() if self._count > self._most else None

    def _evict(self) -> str:
        service = max(self._services, key=lambda each: (len(self._services[each]), each))
        histories = self._services[service]
        oldest = next(iter(histories))
        del histories[oldest]
        if not histories:
            del self._services[service]
        self._count -= 1
        return oldest


@lru_cache(maxsize=64)  # a record asks for each of its names several times
def digest_of(*parts: str) -> str:
    """A name of 32 hex for ids of any length, of which there are many."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]
