from typing import NamedTuple

class TopicPartition(NamedTuple):
    topic: str
    partition: int

class OffsetAndMetadata(NamedTuple):
    offset: int
    metadata: str

class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    timestamp: int | None
    timestamp_type: int

class ConsumerRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        timestamp_type: int,
        key: bytes | None,
        value: bytes | None,
        checksum: int | None,
        serialized_key_size: int,
        serialized_value_size: int,
        headers: tuple[tuple[str, bytes], ...],
    ) -> None: ...
