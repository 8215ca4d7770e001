"""How much each topic may hold, and which records go when: one rule for disk and memory.

spans              released, or below the commit of all its groups; full: refused
closings           below the metadata of the commits on spans
traces             over its share: oldest first, but none that scoring has not read: then the writer waits
signals            below the commit of all its groups; over its share: oldest first
sessions, windows  the newest per key; full: new keys are refused

Dropped records are counted by reason; each sink counts the signals that it finds missing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from collector.errors import LogFull, RecordTooLarge
from collector.log.commits import Commits
from collector.log.families import LogFamilies
from collector.log.port import (
    CLOSINGS,
    MAX_RECORD,
    SESSIONS,
    SIGNALS,
    SPANS,
    TOPICS,
    TRACES,
    WINDOWS,
    Position,
)

_POOLS: dict[str, tuple[tuple[str, ...], float]] = {
    SPANS: ((SPANS, CLOSINGS), 0.50),
    CLOSINGS: ((SPANS, CLOSINGS), 0.50),
    TRACES: ((TRACES,), 0.25),
    SIGNALS: ((SIGNALS,), 0.15),
    SESSIONS: ((SESSIONS, WINDOWS), 0.10),
    WINDOWS: ((SESSIONS, WINDOWS), 0.10),
}
_STOP = {SPANS: 0.9}
"""Appends to `spans` stop early: closing traces is what frees them, and closings need the rest."""
_DROPPING = (TRACES, SIGNALS)


@dataclass(frozen=True, slots=True)
class Quotas:
    """The bytes that each topic may hold of a log of `max_size` bytes (docs/operate.md: the log's shares)."""

    max_size: int

    def pool(self, topic: str) -> tuple[str, ...]:
        """The topics that share one limit with this one, itself included."""
        return _POOLS[topic][0]

    def quota(self, topic: str) -> int:
        """The bytes that the topic's pool may hold."""
        return int(self.max_size * _POOLS[topic][1])

    def limit(self, topic: str) -> int:
        """The bytes of the pool above which the topic takes no more (or drops its oldest)."""
        return int(self.quota(topic) * _STOP.get(topic, 1.0))

    def largest(self, topic: str) -> int:
        """The largest record of the topic that can ever be written."""
        return min(MAX_RECORD, self.limit(topic) * 4 // 5)

    def limits(self) -> dict[str, int]:
        """The quota of every topic."""
        return {topic: self.quota(topic) for topic in TOPICS}


class RecordStore(Protocol):
    """The records of the log, as one transaction sees them."""

    def used(self, topic: str) -> int:
        """Bytes that the topic holds."""
        ...

    def oldest(self, topic: str, partition: int) -> tuple[int, float] | None:
        """Offset and time of the partition's oldest record."""
        ...

    def delete(self, position: Position) -> None:
        """Remove a record; does nothing when it does not exist."""
        ...


class Drops:
    """Records dropped in one transaction, reported once it has committed."""

    def __init__(self) -> None:
        self._records: Counter[tuple[str, str]] = Counter()

    def take(self, topic: str, behind: tuple[str, ...]) -> None:
        """Count a record that was dropped although the groups `behind` had not read it."""
        if topic == SIGNALS:
            self._records[topic, "share"] += 1
        else:
            self._records[topic, "unread" if behind else "expired"] += 1

    @property
    def topics(self) -> frozenset[str]:
        """The topics of the dropped records."""
        return frozenset(topic for topic, _ in self._records)

    def report(self, families: LogFamilies) -> None:
        """Add to the counters."""
        for labels, count in self._records.items():
            families.dropped_records.labels(*labels).inc(count)


@dataclass(frozen=True, slots=True)
class Retention:
    """The rules, for a log of this size."""

    quotas: Quotas
    partitions: Callable[[str], int]
    waits_for: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """By topic, the groups whose unread records are never dropped: writers wait for these groups."""

    def admit(
        self,
        store: RecordStore,
        commits: Commits,
        need: Mapping[str, int],
        *,
        committing: Collection[str] = (),
    ) -> None:
        """Refuse a call that would put a topic over its share.

        A call that commits on the very topic makes space there, so it passes where others wait.

        Raises:
            LogFull: try again once records were deleted.
            RecordTooLarge: the call is larger than the whole share.
        """
        for topic, size in need.items():
            limit = self.quotas.limit(topic)
            if size > limit:
                raise RecordTooLarge(f"{size} bytes at once on `{topic}`; its share is {limit}")
            if topic in _DROPPING:
                if topic not in committing:
                    self._wait(store, commits, topic, size)
                continue
            if not size:
                continue
            pool = self.quotas.pool(topic)
            used = sum(store.used(other) for other in pool)
            if used + size > limit:
                raise LogFull(f"topic `{topic}` holds {used} bytes of {limit}; try again later")

    def _wait(self, store: RecordStore, commits: Commits, topic: str, size: int) -> None:
        used = store.used(topic)
        if used + size <= self.quotas.limit(topic):
            return
        position = self._oldest(store, topic)
        if position is not None and self._is_awaited(commits, position):
            raise LogFull(f"topic `{topic}` holds {used} bytes that are not read; try again later")

    def _is_awaited(self, commits: Commits, position: Position) -> bool:
        groups = self.waits_for.get(position.topic, frozenset())
        return bool(groups) and not groups.isdisjoint(commits.behind(*position))

    def make_space(
        self, store: RecordStore, commits: Commits, need: Mapping[str, int], drops: Drops
    ) -> None:
        """Drop the oldest of `traces` and `signals` until `need` more bytes fit into their quotas."""
        for topic in _DROPPING:
            if topic in need:
                self._drop(store, commits, topic, drops, need=need[topic], budget=sys.maxsize)

    def trim(self, store: RecordStore, commits: Commits, drops: Drops, budget: int) -> bool:
        """Delete up to `budget` records that no group needs or that are over a quota; True when there are more."""
        for topic in (SPANS, CLOSINGS, SIGNALS):
            for partition in range(self.partitions(topic)):
                low = Position(topic, partition, _low(commits, topic, partition))
                budget -= _trim_below(store, low, budget)
        for topic in _DROPPING:
            budget -= self._drop(store, commits, topic, drops, need=0, budget=budget)
        return budget <= 0

    def _drop(
        self,
        store: RecordStore,
        commits: Commits,
        topic: str,
        drops: Drops,
        *,
        need: int,
        budget: int,
    ) -> int:
        dropped = 0
        while dropped < budget and store.used(topic) + need > self.quotas.limit(topic):
            position = self._oldest(store, topic)
            if position is None or self._is_awaited(commits, position):
                break
            drops.take(topic, commits.behind(*position))
            store.delete(position)
            dropped += 1
        return dropped

    def _oldest(self, store: RecordStore, topic: str) -> Position | None:
        candidates = [
            (oldest[1], Position(topic, partition, oldest[0]))
            for partition in range(self.partitions(topic))
            if (oldest := store.oldest(topic, partition)) is not None
        ]
        return min(candidates)[1] if candidates else None


def _low(commits: Commits, topic: str, partition: int) -> int:
    """Below this offset no group needs the partition's records."""
    if topic == CLOSINGS:
        return commits.marked(partition)
    return commits.passed(topic, partition)


def _trim_below(store: RecordStore, low: Position, budget: int) -> int:
    deleted = 0
    while deleted < budget:
        oldest = store.oldest(low.topic, low.partition)
        if oldest is None or oldest[0] >= low.offset:
            break
        store.delete(low._replace(offset=oldest[0]))
        deleted += 1
    return deleted
