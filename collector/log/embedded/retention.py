"""How much each topic may hold, and which records go when: one rule for disk and memory.

spans              kept for the trace records that name them; no one waits for those released or below the commits
closings           below the metadata of the commits on spans
traces             kept as long as there is room, those that scoring has not read even longer
  spans, closings, traces share one pool; over it: the oldest of traces and of spans that no one waits for. Where
  nothing may go, writers wait
signals, feedback  below the commit of all its groups; over its share: oldest first
sessions, windows  the newest per key; full: new keys are refused

Dropped records are counted by reason; each sink counts the signals that it finds missing.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from collector.base.errors import LogFull, RecordTooLarge
from collector.log.commits import Commits
from collector.log.embedded.released_spans import ReleasedSpans
from collector.log.families import LogFamilies
from collector.log.port import (
    CLOSINGS,
    COMPACTED,
    FEEDBACK,
    MAX_RECORD,
    SESSIONS,
    SIGNALS,
    SPANS,
    TOPICS,
    TRACES,
    WINDOWS,
    Position,
    Record,
)

_TRACED = (SPANS, CLOSINGS, TRACES)
_POOLS: dict[str, tuple[tuple[str, ...], float]] = {
    SPANS: (_TRACED, 0.75),
    CLOSINGS: (_TRACED, 0.75),
    TRACES: (_TRACED, 0.75),
    SIGNALS: ((SIGNALS,), 0.13),
    FEEDBACK: ((FEEDBACK,), 0.02),
    SESSIONS: ((SESSIONS, WINDOWS), 0.10),
    WINDOWS: ((SESSIONS, WINDOWS), 0.10),
}
_STOP = {SPANS: 0.8}
"""Appends to `spans` stop early: closing traces is what frees them, and traces and closings need the rest."""
_DELIVERED = (SIGNALS, FEEDBACK)
_DROPPING = (*_TRACED, *_DELIVERED)
_REASONS = {SPANS: "expired", SIGNALS: "share", FEEDBACK: "share"}
_AT_ONCE = 4 << 20
"""Bytes that are freed together in a pool that is full: each deletion writes the pages around it again."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The bytes that each topic may hold of a log of `max_size` bytes (docs/operate.md: the log's shares)."""

    max_size: int

    def pool(self, topic: str) -> tuple[str, ...]:
        """The topics that share one limit with this one, itself included."""
        return _POOLS[topic][0]

    def quota(self, topic: str) -> int:
        return int(self.max_size * _POOLS[topic][1])

    def limit(self, topic: str) -> int:
        """The bytes of the pool above which the topic takes no more (or drops its oldest)."""
        return int(self.quota(topic) * _STOP.get(topic, 1.0))

    def largest(self, topic: str) -> int:
        return min(MAX_RECORD, self.at_once(topic) * 4 // 5)

    def at_once(self, topic: str) -> int:
        """The bytes of the topic that one call may write: of `traces`, what spans always leave."""
        limit = self.limit(topic)
        return limit - self.limit(SPANS) if topic == TRACES else limit

    def limits(self) -> dict[str, int]:
        return {topic: self.quota(topic) for topic in TOPICS}


class Stored(NamedTuple):
    """A record that may be dropped; the older one is the smaller."""

    time: float
    position: Position
    width: int = 1  # how many offsets it takes


class RecordStore(Protocol):
    """The records of the log, as one transaction sees them."""

    def used(self, topic: str) -> int: ...

    def need(self, record: Record) -> int:
        """Bytes by which the topic would grow; 0 for a tombstone or a key that the topic holds already."""
        ...

    def oldest(self, topic: str, partition: int) -> Stored | None: ...

    def at(self, position: Position) -> Stored | None: ...

    def delete(self, position: Position) -> None:
        """Remove a record; does nothing when it does not exist."""
        ...


class DroppedRecords:
    """Records dropped in one transaction, each by its count, reported once it has committed."""

    def __init__(self) -> None:
        self._records: Counter[tuple[str, str]] = Counter()
        self.positions: list[Position] = []

    def take(self, position: Position, behind: tuple[str, ...], count: int = 1) -> None:
        """Count a record of `count` offsets that was dropped although the groups `behind` had not read it.

        Of spans no one waited for any: they have expired.
        """
        self.positions.append(position)
        reason = "unread" if behind else "expired"
        if position.topic in _REASONS:
            reason = _REASONS[position.topic]
        self._records[position.topic, reason] += count

    def report(self, families: LogFamilies) -> None:
        for labels, count in self._records.items():
            families.dropped_records.labels(*labels).inc(count)


@dataclass(frozen=True, slots=True)
class Retention:
    """The rules, for a log of this size."""

    quotas: Quotas
    partitions: Callable[[str], int]
    waits_for: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """By topic, the groups whose unread records are never dropped: writers wait for these groups."""
    keeps: ReleasedSpans | None = None
    """The log keeps spans until their room is needed, and here it notes which were released; None: it deletes them."""


@dataclass(slots=True)
class AppliedRetention:
    """The rules, applied to the records and the commits as one transaction sees them."""

    rules: Retention
    store: RecordStore
    commits: Commits
    drops: DroppedRecords = field(default_factory=DroppedRecords)

    def admit(self, need: Mapping[str, int], *, committing: Collection[str] = ()) -> None:
        """Drop what may go, the oldest first, until `need` more bytes fit; refuse a call that does not fit even so.

        A call that commits on the very topic makes space there, so it passes where others wait. Raises LogFull: try
        again once records were deleted. Raises RecordTooLarge: the call is larger than the whole share.
        """
        quotas = self.rules.quotas
        for topic, size in need.items():
            most = quotas.at_once(topic)
            if size > most:
                raise RecordTooLarge(f"{size} bytes at once on `{topic}`; at most {most}")
        for topic, size in need.items():
            if topic in _DROPPING:
                self._drop(topic, need=size, budget=sys.maxsize)
            limit, used = quotas.limit(topic), self._used(topic)
            if size and topic not in committing and used + size > limit:
                raise LogFull(f"topic `{topic}` holds {used} bytes of {limit}; try again later")

    def release(self, position: Position) -> None:
        """No trace needs the record any more: note that it may go, or delete it before its commit."""
        keeps = self.rules.keeps
        if keeps is not None and position.topic == SPANS:
            keeps.add(position.partition, position.offset)
        elif position.topic not in COMPACTED:
            self.store.delete(position)

    def trim(self, budget: int) -> bool:
        """Delete up to `budget` records that no group needs or that are over a quota; True when there are more."""
        read = (CLOSINGS, *_DELIVERED)
        for topic in read if self.rules.keeps is not None else (SPANS, *read):
            for partition in range(self.rules.partitions(topic)):
                budget -= self._trim_below(self._low(topic, partition), budget)
        for topic in (TRACES, *_DELIVERED):
            budget -= self._drop(topic, need=0, budget=budget)
        return budget <= 0

    def free(self, size: int) -> None:
        """Drop the oldest spans and traces that may go, about `size` bytes of them, though the share is not used up."""
        wanted = self._used(TRACES) - size
        while self._used(TRACES) > wanted and (found := self._next_drop(TRACES)) is not None:
            self._take(found)

    def _used(self, topic: str) -> int:
        return sum(self.store.used(other) for other in self.rules.quotas.pool(topic))

    def _is_awaited(self, position: Position) -> bool:
        groups = self.rules.waits_for.get(position.topic, frozenset())
        return bool(groups) and not groups.isdisjoint(self.commits.behind(*position))

    def _take(self, found: Stored) -> None:
        self.drops.take(found.position, self.commits.behind(*found.position), found.width)
        self.store.delete(found.position)

    def _drop(self, topic: str, *, need: int, budget: int) -> int:
        limit = self.rules.quotas.limit(topic)
        if self._used(topic) + need <= limit:
            return 0
        if self.rules.keeps is not None and topic in _TRACED:
            limit -= min(_AT_ONCE, limit // 64)
        dropped = 0
        while dropped < budget and self._used(topic) + need > limit:
            found = self._next_drop(topic)
            if found is None:
                break
            self._take(found)
            dropped += 1
        return dropped

    def _next_drop(self, topic: str) -> Stored | None:
        """What goes next to make room for the topic; None: nothing may."""
        if topic in _TRACED:
            found = [self._oldest(TRACES), self._oldest_span()]
        else:
            found = [self._oldest(topic) if topic in _DROPPING else None]
        candidates = (each for each in found if each and not self._is_awaited(each.position))
        return min(candidates, default=None)

    def _oldest(self, topic: str) -> Stored | None:
        numbers = range(self.rules.partitions(topic))
        found = (self.store.oldest(topic, partition) for partition in numbers)
        return min(filter(None, found), default=None)

    def _oldest_span(self) -> Stored | None:
        """The oldest record of spans that no one waits for; None: there is none, or this log keeps none."""
        keeps = self.rules.keeps
        if keeps is None:
            return None
        numbers = range(self.rules.partitions(SPANS))
        found = (self._unneeded(keeps, partition) for partition in numbers)
        return min(filter(None, found), default=None)

    def _unneeded(self, released: ReleasedSpans, partition: int) -> Stored | None:
        low = self.commits.passed(SPANS, partition)
        oldest = self.store.oldest(SPANS, partition)
        if oldest is None or oldest.position.offset < low:
            return oldest
        while (offset := released.first(partition, low)) is not None:
            found = self.store.at(Position(SPANS, partition, offset))
            if found is not None:
                return found
            released.remove(partition, offset)
        return None

    def _low(self, topic: str, partition: int) -> Position:
        """Of a partition, the first record that a group may still need."""
        marked = self.commits.marked
        offset = marked(partition) if topic == CLOSINGS else self.commits.passed(topic, partition)
        return Position(topic, partition, offset)

    def _trim_below(self, low: Position, budget: int) -> int:
        deleted = 0
        while deleted < budget:
            oldest = self.store.oldest(low.topic, low.partition)
            if oldest is None or oldest.position >= low:
                break
            self.store.delete(oldest.position)
            deleted += 1
        return deleted
