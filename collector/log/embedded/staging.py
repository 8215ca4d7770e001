"""The first half of a write: give every record its position and its bytes, touching nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from collector.errors import RecordTooLarge
from collector.log.embedded.shares import Shares
from collector.log.partitioner import partition_of
from collector.log.port import COMPACTED, Commit, Headers, New, Position

Place = tuple[str, int]
"""A topic and a partition."""


class Staged(msgspec.Struct, frozen=True):
    """A record that is ready to be appended. `value` None: a tombstone."""

    position: Position
    key: bytes
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Its bytes, without what the store adds."""
        size = len(self.key) + len(self.value or b"")
        for name, value in self.headers:
            size += len(name) + len(value) + 8
        return size


def stage(
    records: Sequence[New],
    nexts: Mapping[Place, int],
    *,
    partitions: Callable[[str], int],
    shares: Shares,
) -> list[Staged]:
    """Positions from `nexts` on, values computed.

    Raises:
        RecordTooLarge: one of them can never be written.
        ValueError: a tombstone on a topic that is not compacted, or a partition that does not exist.
    """
    claimed: dict[Place, int] = {}
    positions: list[Position] = []
    staged: list[Staged] = []
    for new in records:
        place = _place(new, partitions(new.topic))
        offset = claimed.get(place, nexts.get(place, 0))
        value = new.value(tuple(positions)) if callable(new.value) else new.value
        record = Staged(Position(*place, offset), new.key, value, new.headers)
        _check(record, shares)
        claimed[place] = offset + 1
        positions.append(record.position)
        staged.append(record)
    return staged


def check_commits(commits: Sequence[Commit], partitions: Callable[[str], int]) -> None:
    """Refuse a commit on what does not exist.

    Raises:
        ValueError: no such topic or partition.
    """
    for commit in commits:
        _known(commit.topic, commit.partition, partitions(commit.topic))


def _place(new: New, partitions: int) -> Place:
    if new.partition is None:
        return new.topic, partition_of(new.key, partitions)
    _known(new.topic, new.partition, partitions)
    return new.topic, new.partition


def _known(topic: str, partition: int, partitions: int) -> None:
    if not 0 <= partition < partitions:
        raise ValueError(f"topic `{topic}` has no partition {partition}")


def _check(record: Staged, shares: Shares) -> None:
    topic = record.position.topic
    if record.value is None and topic not in COMPACTED:
        raise ValueError(f"topic `{topic}` is not compacted and takes no tombstones")
    largest = shares.largest(topic)
    if record.size > largest:
        raise RecordTooLarge(f"a record of {record.size} bytes on `{topic}`; at most {largest}")
