"""The Kafka log keeps the contract, against a real broker."""

import asyncio
import uuid

import pytest

from collector.base.clock import wall
from collector.base.errors import RecordTooLarge
from collector.base.telemetry import Telemetry
from collector.config.tree import KafkaLogConfig
from collector.log.kafka.kafka_log import KafkaLog
from collector.log.port import SIGNALS, SPANS, TRACES, Batch, Lag, Log, New
from tests.conformance.log.conftest import Opening
from tests.support.kafka.topics import create_topic
from tests.support.log_contract import LogContract
from tests.support.log_steps import (
    PARTITIONS,
    PATIENCE,
    assigned,
    commit_to,
    new,
    reading,
    take,
    values,
)

pytestmark = pytest.mark.kafka


class TestKafkaLog(LogContract):
    """`other` is another process's log on the same records."""

    @pytest.fixture
    async def log(self, opening: Opening, kafka: str) -> Log:
        return await opening(kafka, partitions=PARTITIONS)

    @pytest.fixture
    async def other(self, opening: Opening, kafka: str) -> Log:
        return await opening(kafka, partitions=PARTITIONS)

    async def test_a_second_member_takes_partitions_over(self, log: Log, other: Log) -> None:
        first, second = log.read("assembly", SPANS), other.read("assembly", SPANS)
        mine = set(await assigned(first))
        assert mine == set(range(PARTITIONS))

        theirs: set[int] = set()
        async with asyncio.timeout(PATIENCE * 3):
            while not theirs or mine & theirs or mine | theirs != set(range(PARTITIONS)):
                mine = owned_after(mine, await first.poll(timeout=0.2))
                theirs = owned_after(theirs, await second.poll(timeout=0.2))

        await second.close()
        async with asyncio.timeout(PATIENCE * 3):
            while mine != set(range(PARTITIONS)):
                mine = owned_after(mine, await first.poll(timeout=0.2))

    async def test_every_record_takes_one_offset(self, log: Log) -> None:
        assert not log.counts_offsets
        with pytest.raises(ValueError, match="2 offsets"):
            await log.write([New(topic=SIGNALS, key=b"s", value=b"batch", partition=0, count=2)])

    async def test_a_partition_that_moves_goes_on_from_its_commit(
        self, log: Log, other: Log
    ) -> None:
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(4)])
        first = await reading(log, "assembly", SPANS)
        await take(first, 4)
        offset = positions[2].offset
        await commit_to(log, "assembly", SPANS, offset, metadata=5)
        await first.close()

        second = other.read("assembly", SPANS)
        owned = await assigned(second)

        assert (owned[0].offset, owned[0].metadata) == (offset, 5)
        assert values(await take(second, 2)) == [b"2", b"3"]

    async def test_the_lag_of_a_group_is_reported_by_its_members_or_else_by_all(
        self, log: Log, other: Log
    ) -> None:
        """A role that no process runs shows as lag; while one does, no other process counts it a second time."""
        reader = await reading(log, "assembly", SPANS)
        positions = await log.write([new(SPANS, b"%d" % n) for n in range(3)])
        (first, second, _) = await take(reader, 3)
        offset = positions[1].offset
        await commit_to(log, "assembly", SPANS, offset)
        with_a_member = await other.lag("assembly", SPANS)
        await reader.close()

        async with asyncio.timeout(PATIENCE):
            while (without := await other.lag("assembly", SPANS)) is None:  # noqa: ASYNC110 - the broker's state
                await asyncio.sleep(0.2)

        assert with_a_member is None
        assert without == Lag(2, second.time)
        assert await other.lag("scoring", SPANS) == Lag(3, first.time)  # it never was


def owned_after(owned: set[int], batch: Batch) -> set[int]:
    """What a member owns after this poll."""
    return owned - set(batch.revoked) | {each.partition for each in batch.assigned}


async def test_a_topic_of_smaller_messages_bounds_the_record(kafka: str) -> None:
    name = uuid.uuid4().hex[:8]
    await create_topic(kafka, f"{name}.traces", max_message_bytes="10000")
    settings = KafkaLogConfig(bootstrap_servers=kafka, topic_prefix=f"{name}.", partitions=1)
    log = await KafkaLog.open(settings, clock=wall, telemetry=Telemetry())

    with pytest.raises(RecordTooLarge):
        await log.write([new(TRACES, b"x" * 10_000)])

    await log.write([new(TRACES, b"x" * 9_000)])
    await log.close()
