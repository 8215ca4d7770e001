"""A bounded number of histories, by service and name. Pure."""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar

from collector.log.state_table import StateTable

H = TypeVar("H")


class Histories(Generic[H]):
    """At most `most` histories; of the service with the most of them, the one that was put longest ago is evicted.

    A service that makes up agents or tasks so evicts its own.
    """

    def __init__(
        self, kind: str, most: int, form: Any, pack: Callable[[H], Any], unpack: Callable[[Any], H]
    ) -> None:
        """They are stored as `ranked_<kind>`, each as `pack` gives it: of type `form`."""
        self.table: StateTable[tuple[str, str], Any] = StateTable(
            f"ranked_{kind}",
            tuple[str, str],
            form,
            encode=lambda key: None if (found := self.get(*key)) is None else pack(found),
            restore=lambda key, packed, _: self._put(*key, unpack(packed)),
        )
        self.evicted = 0  # since this was last set to 0
        self._most = most
        self._services: dict[str, dict[str, H]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, service: str, name: str) -> H | None:
        return self._services.get(service, {}).get(name)

    def put(self, service: str, name: str, history: H) -> None:
        self._put(service, name, history)
        self.table.change((service, name))

    def _put(self, service: str, name: str, history: H) -> None:
        histories = self._services.setdefault(service, {})
        self._count += name not in histories
        histories.pop(name, None)
        histories[name] = history
        if self._count > self._most:
            self._evict()

    def _evict(self) -> None:
        service = max(self._services, key=lambda each: (len(self._services[each]), each))
        histories = self._services[service]
        oldest = next(iter(histories))
        del histories[oldest]
        if not histories:
            del self._services[service]
        self._count -= 1
        self.evicted += 1
        self.table.forget((service, oldest))


@lru_cache(maxsize=64)  # a record asks for each of its names several times
def digest_of(*parts: str) -> str:
    """A name of 32 hex for ids of any length, of which there are many."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


def number_of(service: str, subject: str) -> int:
    """64 bits for a session or a trace of a service."""
    return int(digest_of(service, subject)[:16], 16)
