"""The first half of a write: every record gets its position and its bytes, and room is made for them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from collector.base.errors import RecordTooLarge
from collector.log.embedded.retention import AppliedRetention, Quotas
from collector.log.port import (
    COMPACTED,
    MAX_COUNT,
    Commit,
    New,
    Position,
    Record,
    partition_of,
)

TopicPartition = tuple[str, int]  # a topic and a partition


def admit(
    records: Sequence[New],
    commits: Sequence[Commit],
    end_offsets: Mapping[TopicPartition, int],
    *,
    time: float,
    retention: AppliedRetention,
) -> list[Record]:
    """The records as `prepare` makes them, once there is room for all. When it raises, nothing of them is written.

    Raises LogFull: see `AppliedRetention.admit`. Raises RecordTooLarge, ValueError: see `prepare`; or a commit is on a
    topic or partition that does not exist.
    """
    partitions = retention.rules.partitions
    for commit in commits:
        _check_partition(commit.topic, commit.partition, partitions(commit.topic))
    quotas = retention.rules.quotas
    prepared = prepare(records, end_offsets, time=time, partitions=partitions, quotas=quotas)
    need: Counter[str] = Counter()
    for record in prepared:
        need[record.position.topic] += retention.store.need(record)
    retention.admit(need, committing={commit.topic for commit in commits})
    return prepared


def prepare(
    records: Sequence[New],
    end_offsets: Mapping[TopicPartition, int],
    *,
    time: float,
    partitions: Callable[[str], int],
    quotas: Quotas,
) -> list[Record]:
    """The records as they will be read, with positions from `end_offsets` on, and their values computed.

    Raises RecordTooLarge: one of them can never be written. Raises ValueError: a tombstone on a topic that is not
    compacted, several offsets on one that is, or a partition that does not exist.
    """
    claimed: dict[TopicPartition, int] = {}
    prepared: list[Record] = []
    largest: dict[str, int] = {}
    for new in records:
        topic = new.topic
        if topic not in largest:
            largest[topic] = quotas.largest(topic)
        topic_partition = _target(new, partitions(topic))
        first = claimed.get(topic_partition, end_offsets.get(topic_partition, 0))
        position = Position(topic, topic_partition[1], first + new.count - 1)
        value = new.value(prepared[-1].position) if callable(new.value) else new.value
        if value is None and topic not in COMPACTED:
            raise ValueError(f"topic `{topic}` is not compacted and takes no tombstones")
        record = Record(
            position=position,
            key=new.key,
            value=value or b"",
            time=time,
            headers=new.headers,
            count=new.count,
        )
        _check(record, largest[topic])
        claimed[topic_partition] = position.offset + 1
        prepared.append(record)
    return prepared


def _target(new: New, partitions: int) -> TopicPartition:
    if new.partition is None:
        return new.topic, partition_of(new.key, partitions)
    _check_partition(new.topic, new.partition, partitions)
    return new.topic, new.partition


def _check_partition(topic: str, partition: int, partitions: int) -> None:
    if not 0 <= partition < partitions:
        raise ValueError(f"topic `{topic}` has no partition {partition}")


def _check(record: Record, largest: int) -> None:
    topic = record.position.topic
    if not 1 <= record.count <= (1 if topic in COMPACTED else MAX_COUNT):
        raise ValueError(f"a record on `{topic}` cannot take {record.count} offsets")
    if (size := record.size) > largest:
        raise RecordTooLarge(f"a record of {size} bytes on `{topic}`; at most {largest}")
