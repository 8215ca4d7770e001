import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka.admin.config_resource import ConfigResource
from aiokafka.client import AIOKafkaClient
from aiokafka.structs import OffsetAndMetadata, TopicPartition

class NewTopic:
    name: str
    def __init__(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        topic_configs: Mapping[str, str] | None = ...,
    ) -> None: ...

class CreateTopicsResponse:
    topic_errors: Sequence[tuple[str, int, str | None]]

class DescribeConfigsResponse:
    resources: Sequence[tuple[int, str, int, str, Sequence[tuple[str, str | None]]]]

class DescribeGroupsResponse:
    groups: Sequence[tuple[int, str, str, *tuple[Any, ...]]]

class AIOKafkaAdminClient:
    _client: AIOKafkaClient
    def __init__(
        self,
        *,
        bootstrap_servers: str = ...,
        security_protocol: str = ...,
        ssl_context: ssl.SSLContext | None = ...,
        sasl_mechanism: str = ...,
        sasl_plain_username: str | None = ...,
        sasl_plain_password: str | None = ...,
    ) -> None: ...
    async def start(self) -> None: ...
    async def close(self) -> None: ...
    async def list_topics(self) -> list[str]: ...
    async def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]: ...
    async def describe_consumer_groups(
        self,
        group_ids: list[str],
        *,
        include_authorized_operations: bool = ...,
    ) -> list[DescribeGroupsResponse]: ...
    async def list_consumer_group_offsets(
        self, group_id: str
    ) -> dict[TopicPartition, OffsetAndMetadata]: ...
    async def describe_configs(
        self, config_resources: Sequence[ConfigResource]
    ) -> list[DescribeConfigsResponse]: ...
    async def create_topics(
        self, new_topics: Sequence[NewTopic], *, validate_only: bool = ...
    ) -> CreateTopicsResponse: ...
    async def delete_topics(self, topics: Sequence[str]) -> object: ...
    async def delete_records(self, records_to_delete: object) -> object: ...
