import asyncio
import ssl
from collections.abc import Mapping, Sequence

from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.client import AIOKafkaClient
from aiokafka.structs import (
    ConsumerRecord,
    OffsetAndMetadata,
    RecordMetadata,
    TopicPartition,
)

class _Accumulator:
    def fail_all(self, exception: Exception) -> None: ...

class _Sender:
    sender_task: asyncio.Task[None] | None

class AIOKafkaProducer:
    client: AIOKafkaClient
    _message_accumulator: _Accumulator
    _sender: _Sender
    def __init__(
        self,
        *,
        bootstrap_servers: str = ...,
        security_protocol: str = ...,
        ssl_context: ssl.SSLContext | None = ...,
        sasl_mechanism: str = ...,
        sasl_plain_username: str | None = ...,
        sasl_plain_password: str | None = ...,
        client_id: str | None = ...,
        acks: str = ...,
        enable_idempotence: bool = ...,
        compression_type: str | None = ...,
        linger_ms: int = ...,
        max_batch_size: int = ...,
        max_request_size: int = ...,
        request_timeout_ms: int = ...,
    ) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(
        self,
        topic: str,
        value: bytes | None = ...,
        key: bytes | None = ...,
        partition: int | None = ...,
        timestamp_ms: int | None = ...,
        headers: Sequence[tuple[str, bytes]] | None = ...,
    ) -> asyncio.Future[RecordMetadata]: ...

class _Coordinator:
    def check_errors(self) -> None: ...
    async def fetch_committed_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]: ...

class AIOKafkaConsumer:
    _client: AIOKafkaClient
    _coordinator: _Coordinator
    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str = ...,
        security_protocol: str = ...,
        ssl_context: ssl.SSLContext | None = ...,
        sasl_mechanism: str = ...,
        sasl_plain_username: str | None = ...,
        sasl_plain_password: str | None = ...,
        group_id: str | None = ...,
        group_instance_id: str | None = ...,
        auto_offset_reset: str = ...,
        enable_auto_commit: bool = ...,
        partition_assignment_strategy: Sequence[type] = ...,
        session_timeout_ms: int = ...,
        heartbeat_interval_ms: int = ...,
        rebalance_timeout_ms: int = ...,
    ) -> None: ...
    def partitions_for_topic(self, topic: str) -> set[int] | None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def subscribe(
        self, topics: Sequence[str], *, listener: ConsumerRebalanceListener | None = ...
    ) -> None: ...
    def assign(self, partitions: Sequence[TopicPartition]) -> None: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None: ...
    async def beginning_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]: ...
    async def end_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]: ...
    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = ..., max_records: int | None = ...
    ) -> Mapping[TopicPartition, Sequence[ConsumerRecord]]: ...
