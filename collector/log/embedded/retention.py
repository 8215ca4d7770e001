"""What the log lets go of, and when: one rule for every adapter that keeps its own records (disk, memory).

spans              released, or below the commit of all its groups; full: refused
closings           below the marks of the commits on spans
traces             over its share: oldest first, but none that scoring has not read: then the writer waits
signals            below the commit of all its groups; over its share: oldest first
sessions, windows  the newest per key; full: new keys are refused

What went unread is counted, by reason and by sink.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from collector.errors import LogFull, RecordTooLarge
from collector.log.commits import Commits
from collector.log.embedded.shares import Shares
from collector.log.port import CLOSINGS, SIGNALS, SPANS, TRACES, Position
from collector.telemetry import Telemetry

_DROPPING = (TRACES, SIGNALS)
_SINK = "sink."


class Shelf(Protocol):
    """Where the records stand, as one transaction sees them."""

    def used(self, topic: str) -> int:
        """Bytes that the topic holds."""
        ...

    def oldest(self, topic: str, partition: int) -> tuple[int, float] | None:
        """Offset and time of the partition's oldest record."""
        ...

    def delete(self, position: Position) -> None:
        """Remove a record; one that is gone is fine."""
        ...


class Drops:
    """Records dropped in one transaction, told to telemetry once that is certain."""

    def __init__(self) -> None:
        self._records: Counter[tuple[str, str]] = Counter()
        self._lost: Counter[str] = Counter()

    def take(self, topic: str, behind: tuple[str, ...]) -> None:
        """A record went although the groups `behind` had not read it."""
        if topic == SIGNALS:
            self._records[topic, "share"] += 1
            self._lost.update(g.removeprefix(_SINK) for g in behind if g.startswith(_SINK))
        else:
            self._records[topic, "unread" if behind else "expired"] += 1

    @property
    def topics(self) -> frozenset[str]:
        """Of the records that went."""
        return frozenset(topic for topic, _ in self._records)

    def report(self, telemetry: Telemetry) -> None:
        """Add to the counters."""
        for labels, count in self._records.items():
            telemetry.log_dropped_records.labels(*labels).inc(count)
        for sink, count in self._lost.items():
            telemetry.signals.labels(sink, "lost").inc(count)


@dataclass(frozen=True, slots=True)
class Retention:
    """The rules, for a log of this size."""

    shares: Shares
    partitions: Callable[[str], int]
    waits_for: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """By topic, the groups whose unread records are never dropped: whoever writes more must wait for them."""

    def admit(
        self,
        shelf: Shelf,
        commits: Commits,
        need: Mapping[str, int],
        *,
        committing: Collection[str] = (),
    ) -> None:
        """Refuse a call that would put a topic over its share.

        A call that commits on the very topic makes room there, so it passes where others wait.

        Raises:
            LogFull: try again when records have gone.
            RecordTooLarge: the call is larger than the whole share.
        """
        for topic, size in need.items():
            limit = self.shares.limit(topic)
            if size > limit:
                raise RecordTooLarge(f"{size} bytes at once on `{topic}`; its share is {limit}")
            if topic in _DROPPING:
                if topic not in committing:
                    self._wait(shelf, commits, topic, size)
                continue
            if not size:
                continue
            pool = self.shares.pool(topic)
            held = sum(shelf.used(other) for other in pool)
            if held + size > limit:
                raise LogFull(f"topic `{topic}` holds {held} bytes of {limit}; try again later")

    def _wait(self, shelf: Shelf, commits: Commits, topic: str, size: int) -> None:
        held = shelf.used(topic)
        if held + size <= self.shares.limit(topic):
            return
        position = self._oldest(shelf, topic)
        if position is not None and self._is_awaited(commits, position):
            raise LogFull(f"topic `{topic}` holds {held} bytes that are not read; try again later")

    def _is_awaited(self, commits: Commits, position: Position) -> bool:
        groups = self.waits_for.get(position.topic, frozenset())
        return bool(groups) and not groups.isdisjoint(commits.behind(*position))

    def make_room(
        self, shelf: Shelf, commits: Commits, need: Mapping[str, int], drops: Drops
    ) -> None:
        """Drop the oldest of `traces` and `signals` until what comes fits into their shares."""
        for topic in _DROPPING:
            if topic in need:
                self._drop(shelf, commits, topic, drops, need=need[topic], budget=sys.maxsize)

    def trim(self, shelf: Shelf, commits: Commits, drops: Drops, budget: int) -> bool:
        """Delete up to `budget` records that nobody needs or that are too many; True when there are more."""
        for topic in (SPANS, CLOSINGS, SIGNALS):
            for partition in range(self.partitions(topic)):
                low = Position(topic, partition, _low(commits, topic, partition))
                budget -= _trim_below(shelf, low, budget)
        for topic in _DROPPING:
            budget -= self._drop(shelf, commits, topic, drops, need=0, budget=budget)
        return budget <= 0

    def _drop(
        self,
        shelf: Shelf,
        commits: Commits,
        topic: str,
        drops: Drops,
        *,
        need: int,
        budget: int,
    ) -> int:
        dropped = 0
        while dropped < budget and shelf.used(topic) + need > self.shares.limit(topic):
            position = self._oldest(shelf, topic)
            if position is None or self._is_awaited(commits, position):
                break
            drops.take(topic, commits.behind(*position))
            shelf.delete(position)
            dropped += 1
        return dropped

    def _oldest(self, shelf: Shelf, topic: str) -> Position | None:
        heads = [
            (head[1], Position(topic, partition, head[0]))
            for partition in range(self.partitions(topic))
            if (head := shelf.oldest(topic, partition)) is not None
        ]
        return min(heads)[1] if heads else None


def _low(commits: Commits, topic: str, partition: int) -> int:
    """Below this offset nobody needs the partition's records."""
    if topic == CLOSINGS:
        return commits.marked(partition)
    return commits.passed(topic, partition)


def _trim_below(shelf: Shelf, low: Position, budget: int) -> int:
    deleted = 0
    while deleted < budget:
        head = shelf.oldest(low.topic, low.partition)
        if head is None or head[0] >= low.offset:
            break
        shelf.delete(low._replace(offset=head[0]))
        deleted += 1
    return deleted
