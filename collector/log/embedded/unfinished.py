"""Which records of a partition wait for a group, in a log of one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from collector.log.embedded.polling import PollingReader, Source
from collector.log.embedded.prepared_record import TopicPartition
from collector.log.port import Lag


class Unfinished(NamedTuple):
    """Offsets of one partition, from `low` to below `end`."""

    partition: int
    low: int
    end: int


def unfinished(
    source: Source,
    readers: Iterable[PollingReader],
    ends: Mapping[TopicPartition, int],
    group: str,
    topic: str,
    *,
    unread: bool,
) -> list[Unfinished]:
    """By partition, from the group's commit (`unread`: from its reader's place) to the end; none that is empty."""
    reader = next((r for r in readers if (r.group, r.topic) == (group, topic)), None)
    found: list[Unfinished] = []
    for partition in range(source.partitions(topic)):
        low = source.committed(group, topic, partition).offset or 0
        if unread and reader is not None:
            low = max(low, reader.position(partition))
        end = ends.get((topic, partition), 0)
        if low < end:
            found.append(Unfinished(partition, low, end))
    return found


def lag_of(
    waiting: Iterable[Unfinished], first: Callable[[Unfinished], tuple[int, float] | None]
) -> Lag:
    """The lag; `first` says first offset and time of the oldest record in these offsets, None: all were deleted."""
    records, times = 0, list[float]()
    for each in waiting:
        found = first(each)
        if found is None:
            continue
        offset, time = found
        records += each.end - offset
        times.append(time)
    return Lag(records, min(times, default=None))
