from collections.abc import Iterator

from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import ConsumerRecord, TopicPartition

class PartitionRecords:
    next_fetch_offset: int
    def __init__(
        self,
        tp: TopicPartition,
        records: MemoryRecords,
        aborted_transactions: None,
        fetch_offset: int,
        key_deserializer: None,
        value_deserializer: None,
        check_crcs: bool,
        isolation_level: int,
    ) -> None: ...
    def __iter__(self) -> Iterator[ConsumerRecord]: ...
    def __next__(self) -> ConsumerRecord: ...
