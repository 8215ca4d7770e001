"""Topics of a test broker: make them, say who may use them, read them whole."""

import asyncio

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.protocol.admin import CreateAclsRequest
from aiokafka.structs import ConsumerRecord

from collector.log.kafka.client import network_client

_KINDS = {"topic": 2, "group": 3, "cluster": 4}
_OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "DescribeConfigs": 10}
_LITERAL, _PREFIXED, _ALLOW = 3, 4, 3


async def create_topic(bootstrap: str, name: str, *, partitions: int = 1, **settings: str) -> None:
    """Create it; settings with `_` for `.`."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        answer = await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
        errors = [error for error in answer.topic_errors if error[1]]
        assert not errors, errors  # aiokafka raises nothing
    finally:
        await admin.close()


async def allow(bootstrap: str, user: str, kind: str, prefix: str, *operations: str) -> None:
    """Let the user do these on topics or groups of this prefix; whatever a rule names is closed to all others."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        client = network_client(admin)
        pattern = _LITERAL if kind == "cluster" else _PREFIXED
        for each in operations:
            rule = (_KINDS[kind], prefix, pattern, f"User:{user}", "*", _OPERATIONS[each], _ALLOW)
            answer = await client.send(client.get_random_node(), CreateAclsRequest(*rule))
            assert not answer.creation_responses[0][0], answer
    finally:
        await admin.close()


async def read_topic(bootstrap: str, name: str, *, quiet: float = 1.0) -> list[ConsumerRecord]:
    """Every record, until none has come for `quiet` seconds."""
    consumer = AIOKafkaConsumer(name, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    found: list[ConsumerRecord] = []
    try:
        while batch := await consumer.getmany(timeout_ms=int(quiet * 1000)):
            found += [record for records in batch.values() for record in records]
    finally:
        # In a task of its own: its stop may end in a `CancelledError` that nobody asked for.
        await asyncio.wait([asyncio.create_task(consumer.stop())], timeout=5)
    return found
