"""The Kafka log keeps the contract, against a real broker."""

import uuid

import pytest

from collector.base.clock import wall
from collector.base.errors import RecordTooLarge
from collector.base.telemetry import Telemetry
from collector.config.tree import KafkaLogConfig
from collector.log.kafka.kafka_log import KafkaLog
from collector.log.port import TRACES, Log
from tests.conformance.log.conftest import Opening
from tests.support.kafka.topics import create_topic
from tests.support.log_steps import PARTITIONS, new
from tests.support.shared_log_contract import SharedLogContract

pytestmark = pytest.mark.kafka


class TestKafkaLog(SharedLogContract):
    @pytest.fixture
    async def log(self, opening: Opening, kafka: str) -> Log:
        return await opening(kafka, partitions=PARTITIONS)

    @pytest.fixture
    async def other(self, opening: Opening, kafka: str) -> Log:
        return await opening(kafka, partitions=PARTITIONS)


async def test_a_topic_of_smaller_messages_bounds_the_record(kafka: str) -> None:
    name = uuid.uuid4().hex[:8]
    await create_topic(kafka, f"{name}.traces", max_message_bytes="10000")
    settings = KafkaLogConfig(bootstrap_servers=kafka, topic_prefix=f"{name}.", partitions=1)
    log = await KafkaLog.open(settings, clock=wall, telemetry=Telemetry())

    with pytest.raises(RecordTooLarge):
        await log.write([new(TRACES, b"x" * 10_000)])

    await log.write([new(TRACES, b"x" * 9_000)])
    await log.close()
