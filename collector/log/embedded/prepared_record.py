"""The first half of a write: every record gets its position and its bytes; the log is not touched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from collector.errors import RecordTooLarge
from collector.log.embedded.retention import Quotas
from collector.log.port import COMPACTED, Commit, Headers, New, Position, Record, partition_of

TopicPartition = tuple[str, int]
"""A topic and a partition."""


class PreparedRecord(msgspec.Struct, frozen=True):
    """A record that is ready to be appended. `value` None: a tombstone."""

    position: Position
    key: bytes
    value: bytes | None
    headers: Headers

    @property
    def size(self) -> int:
        """Bytes of key, value and headers; the store adds its own."""
        size = len(self.key) + len(self.value or b"")
        for name, value in self.headers:
            size += len(name) + len(value) + 8
        return size

    def appended(self, time: float) -> Record:
        """The record, once it is in the log; not of a tombstone, which is none."""
        return Record(
            position=self.position,
            key=self.key,
            value=self.value or b"",
            time=time,
            headers=self.headers,
        )


def prepare(
    records: Sequence[New],
    end_offsets: Mapping[TopicPartition, int],
    *,
    partitions: Callable[[str], int],
    quotas: Quotas,
) -> list[PreparedRecord]:
    """Records with positions from `end_offsets` on, and their values computed.

    Raises:
        RecordTooLarge: one of them can never be written.
        ValueError: a tombstone on a topic that is not compacted, or a partition that does not exist.
    """
    claimed: dict[TopicPartition, int] = {}
    positions: list[Position] = []
    prepared: list[PreparedRecord] = []
    for new in records:
        topic_partition = _target(new, partitions(new.topic))
        offset = claimed.get(topic_partition, end_offsets.get(topic_partition, 0))
        value = new.value(tuple(positions)) if callable(new.value) else new.value
        record = PreparedRecord(Position(*topic_partition, offset), new.key, value, new.headers)
        _check(record, quotas)
        claimed[topic_partition] = offset + 1
        positions.append(record.position)
        prepared.append(record)
    return prepared


def check_commits(commits: Sequence[Commit], partitions: Callable[[str], int]) -> None:
    """Refuse a commit on a topic or partition that does not exist.

    Raises:
        ValueError: no such topic or partition.
    """
    for commit in commits:
        _check_partition(commit.topic, commit.partition, partitions(commit.topic))


def _target(new: New, partitions: int) -> TopicPartition:
    if new.partition is None:
        return new.topic, partition_of(new.key, partitions)
    _check_partition(new.topic, new.partition, partitions)
    return new.topic, new.partition


def _check_partition(topic: str, partition: int, partitions: int) -> None:
    if not 0 <= partition < partitions:
        raise ValueError(f"topic `{topic}` has no partition {partition}")


def _check(record: PreparedRecord, quotas: Quotas) -> None:
    topic = record.position.topic
    if record.value is None and topic not in COMPACTED:
        raise ValueError(f"topic `{topic}` is not compacted and takes no tombstones")
    largest = quotas.largest(topic)
    if record.size > largest:
        raise RecordTooLarge(f"a record of {record.size} bytes on `{topic}`; at most {largest}")
