"""Comparisons with the past that survive restarts in topic `windows`, each with what settles for it. Pure.

A comparison is one label set's or one agent's. A subject counts for one agent of its service: what another agent waits
with is withdrawn. Log time has passed a moment when every partition has: so what enters, and in which order, does not
depend on how partitions interleave, nor on what a restart reads again.

How it is stored: `collector/log/state_table.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from collector.log.state_table import Parts, StateTable
from collector.watch.settling import Settling, Update

HOLD = 120.0  # seconds by which log time may lag behind for a partition that was lost: another process may keep it


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


class Comparison(ABC):
    """One comparison, of which the subjects that entered are stored as a part under the name ENTERED."""

    ENTERED: ClassVar[int]
    settling: Settling[Any]

    @abstractmethod
    def entering(self, passed: float) -> Iterator[None]:
        """Let enter what has settled before log time `passed`, one subject with each step."""

    @abstractmethod
    def expire(self, now: float) -> bool:
        """End what is old at log time `now`; whether anything was."""

    @abstractmethod
    def state(self) -> Any:
        """What is stored of it, as it must be written before the parts that are `due`."""

    def due(self) -> dict[int, bytes]:
        """By name, the parts that must be written now, so that the state stays small."""
        entered = self.settling.entered.due()
        return {} if entered is None else {self.ENTERED: entered}

    def written(self, parts: Parts) -> None:
        """The state, and after it these parts as `due` gave them, are stored."""
        if self.ENTERED in parts:
            self.settling.entered.written(parts[self.ENTERED])


K = TypeVar("K", bound=Hashable)
W = TypeVar("W", bound=Comparison)


class Comparisons(ABC, Generic[K, W]):
    def __init__(self, kind: str, key: Any, state: Any) -> None:
        """Its table in topic `windows` is of this kind, with keys and states of these types."""
        self.table: StateTable[K, Any] = StateTable(
            kind,
            key,
            state,
            encode=self._encode,
            restore=self._restore,
            due=lambda key: self._watches[key].due(),
            stored=self._has_stored,
        )
        self.log_time = LogTime()
        self._watches: dict[K, W] = {}
        self._services: dict[Hashable, dict[K, W]] = {}  # those that may hold the same subjects

    @abstractmethod
    def _service(self, key: K) -> Hashable:
        """What the key has in common with those that may hold the same subjects."""

    @abstractmethod
    def _made(self, key: K, state: Any, parts: Parts) -> W:
        """The comparison of a key as it was stored; a ValueError: it was not."""

    def __iter__(self) -> Iterator[W]:
        return iter(tuple(self._watches.values()))

    def entering(self, reached: Mapping[int, float]) -> Iterator[None]:
        """These partitions have no more records from before these log times: what has settled by then enters.

        One subject with each step, between which other tasks may run; nothing may be offered before the last one.
        """
        self.log_time.reach(reached)
        passed = self.log_time.passed
        due = ((key, w) for key, w in self._watches.items() if w.settling.is_due(passed))
        for key, watch in due:
            for _ in watch.entering(passed):
                self.table.change(key)
                yield

    def expire(self) -> None:
        passed = self.log_time.passed
        for key, watch in self._watches.items():
            if watch.expire(passed):
                self.table.change(key)

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
            self.table.change(key)

    def clear(self) -> None:
        self._services.clear()
        self._watches.clear()
        self.table.clear()
        self.log_time.begin_again()

    def forget(self, holds: Callable[[K], bool]) -> list[W]:
        """Forget those that `holds` no longer: their label values went to others. Returns them."""
        gone = {key: watch for key, watch in self._watches.items() if not holds(key)}
        for key in gone:
            del self._watches[key]
            del self._services[self._service(key)][key]
            self.table.forget(key)
        return list(gone.values())

    def _encode(self, key: K) -> Any:
        watch = self._watches.get(key)
        return None if watch is None else watch.state()

    def _restore(self, key: K, state: Any, parts: Parts) -> None:
        self._add(key, self._made(key, state, parts))

    def _has_stored(self, key: K, parts: Parts) -> None:
        if key in self._watches:
            self._watches[key].written(parts)

    def _add(self, key: K, watch: W) -> W:
        self._watches[key] = watch
        self._services.setdefault(self._service(key), {})[key] = watch
        return watch
