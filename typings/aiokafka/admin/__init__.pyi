from collections.abc import Mapping, Sequence

class NewTopic:
    def __init__(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        topic_configs: Mapping[str, str] | None = ...,
    ) -> None: ...

class CreateTopicsResponse:
    topic_errors: Sequence[tuple[str, int, str | None]]

class AIOKafkaAdminClient:
    def __init__(self, *, bootstrap_servers: str = ...) -> None: ...
    async def start(self) -> None: ...
    async def close(self) -> None: ...
    async def create_topics(self, new_topics: Sequence[NewTopic]) -> CreateTopicsResponse: ...
