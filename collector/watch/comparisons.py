"""Comparisons with the past that survive restarts in topic `windows`, each with what settles for it. Pure.

A comparison is one label set's or one agent's. A subject counts for one agent of its service: what another agent waits
with is withdrawn. Log time has passed a moment when every partition has: so what enters, and in which order, does not
depend on how partitions interleave, nor on what a restart reads again.

The state of a comparison is one record, and all that must agree stands in it. Its larger parts are records of their
own, which are written after the state and may be older than it: the state says what they lack.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from collector.watch.settling import Settling, Update

HOLD = 120.0
"""Seconds by which log time may lag behind for a partition that was lost: another process may keep it."""


class LogTime:
    """How far the partitions of one reader have come."""

    def __init__(self) -> None:
        self._reached: dict[int, float] = {}
        self._owned: set[int] = set()

    def own(self, partition: int) -> None:
        """The partition's records come from now on: log time waits for it."""
        self._reached.setdefault(partition, 0.0)
        self._owned.add(partition)

    def lose(self, partition: int) -> None:
        """The partition's records do not come for now: log time waits for its return, for at most HOLD seconds."""
        self._owned.discard(partition)

    def reach(self, reached: Mapping[int, float]) -> None:
        """These partitions have no more records from before these log times."""
        for partition, time in reached.items():
            self._reached[partition] = max(time, self._reached.get(partition, 0.0))

    def begin_again(self) -> None:
        """Every partition is read again from its commit."""
        self._reached = dict.fromkeys(self._reached, 0.0)

    @property
    def passed(self) -> float:
        least = min((self._reached[each] for each in self._owned), default=0.0)
        return min((max(each, least - HOLD) for each in self._reached.values()), default=0.0)


class Comparison(Protocol):
    """What is kept for one key."""

    @property
    def settling(self) -> Settling[Any]: ...

    @property
    def parts(self) -> set[int]:
        """Names of the parts that are stored."""
        ...

    def entering(self, passed: float) -> Iterator[None]:
        """Let enter what has settled before log time `passed`, one subject with each step."""
        ...

    def expire(self, now: float) -> bool:
        """End what is old at log time `now`; whether anything was."""
        ...

    def encode(self) -> bytes:
        """The state, as it must be written before the parts that are `due`."""
        ...

    def due(self) -> dict[int, bytes]:
        """By name, the parts that must be written now, so that the state stays small."""
        ...

    def written(self, parts: Mapping[int, bytes]) -> None:
        """The state, and after it these parts as `due` gave them, are stored."""
        ...


K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Comparison)


class Comparisons(ABC, Generic[K, W]):
    """Every comparison of one kind, and those that changed since they were last written to topic `windows`."""

    def __init__(self) -> None:
        self.log_time = LogTime()
        self._watches: dict[K, W] = {}
        self._services: dict[Hashable, dict[K, W]] = {}
        """Those that may hold the same subjects."""
        self._changed: set[K] = set()
        self._removed: dict[bytes, None] = {}
        """Keys whose records are to be removed."""
        self._due: dict[K, dict[int, bytes]] = {}
        """The parts among the records that `pending` gave last."""

    @abstractmethod
    def _service(self, key: K) -> Hashable:
        """What the key has in common with those that may hold the same subjects."""

    @abstractmethod
    def _stored_at(self, key: K, part: int | None = None) -> bytes:
        """The key of its state in topic `windows`, or of a part of it."""

    @abstractmethod
    def _packed_part(self, key: K, name: int, packed: bytes) -> bytes:
        """The record of a part."""

    def __iter__(self) -> Iterator[W]:
        return iter(tuple(self._watches.values()))

    def entering(self, reached: Mapping[int, float]) -> Iterator[None]:
        """These partitions have no more records from before these log times: what has settled by then enters.

        One subject with each step, between which other tasks may run; nothing may be offered before the last one.
        """
        self.log_time.reach(reached)
        passed = self.log_time.passed
        for key, watch in self._watches.items():
            for _ in watch.entering(passed):
                self._changed.add(key)
                yield

    def expire(self) -> None:
        """End what is old, as the next subject that enters would."""
        passed = self.log_time.passed
        for key, watch in self._watches.items():
            if watch.expire(passed):
                self._changed.add(key)

    def _is_decided(self, service: Hashable, key: K, update: Update) -> bool:
        """Whether the update comes too late for any agent. What other agents of the service wait with is withdrawn.

        That is done for records that were taken in before, too: a crash may have stored one agent's state of the two.
        """
        decided = False
        for each, watch in self._services.get(service, {}).items():
            if watch.settling.is_decided(update):
                decided = True
            elif each != key:
                self._withdraw(each, update)
        return decided

    def _withdraw(self, key: K, update: Update) -> None:
        watch = self._watches.get(key)
        if watch is not None and watch.settling.withdraw(update):
            self._changed.add(key)

    # --- storing -----------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget everything, to read it back with the partitions, each from its commit."""
        self._services.clear()
        self._watches.clear()
        self._changed.clear()
        self._removed.clear()
        self._due.clear()
        self.log_time.begin_again()

    def forget(self, holds: Callable[[K], bool]) -> list[W]:
        """Forget those that `holds` no longer: their label values went to others. Returns them."""
        gone = {key: watch for key, watch in self._watches.items() if not holds(key)}
        for key, watch in gone.items():
            del self._watches[key]
            self._changed.discard(key)
            del self._services[self._service(key)][key]
            # The state is removed last: without it, parts that a crash left would be taken for those of a new one.
            self._removed |= {self._stored_at(key, each): None for each in sorted(watch.parts)}
            self._removed |= {self._stored_at(key): None}
        return list(gone.values())

    def pending(self) -> dict[bytes, bytes | None]:
        """By key, the records that topic `windows` lacks, in the order of the write; None removes one."""
        changed = {key: self._watches[key] for key in self._changed}
        self._due = {key: watch.due() for key, watch in changed.items()}
        parts = {
            self._stored_at(key, name): self._packed_part(key, name, packed)
            for key, due in self._due.items()
            for name, packed in due.items()
        }
        # A part that is older than its state is brought up to date by it; the other way round it could not be.
        written = {self._stored_at(key): watch.encode() for key, watch in changed.items()} | parts
        removed = {key: None for key in self._removed if key not in written}
        return removed | written

    def written(self) -> None:
        """What `pending` gave last is in the topic."""
        for key, due in self._due.items():
            self._watches[key].written(due)
        self._changed.clear()
        self._removed.clear()
        self._due.clear()

    def _add(self, key: K, watch: W) -> W:
        self._watches[key] = watch
        self._services.setdefault(self._service(key), {})[key] = watch
        return watch
