"""What only a log that several programs share meets: zombies, gaps, outages, and records that are not ours."""

import asyncio
import random
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.client import AIOKafkaClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.structs import TopicPartition

from collector.base.errors import LogUnavailable
from collector.base.telemetry import Telemetry
from collector.log.kafka.client import network_client
from collector.log.kafka.kafka_log import KafkaLog
from collector.log.kafka.reader import KafkaReader
from collector.log.port import CLOSINGS, SESSIONS, SPANS, TRACES, New
from tests.conformance.log.conftest import Opening
from tests.conformance.log.test_kafka_log import owned_after
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.log_steps import all_of, assigned, at_end, commit_to, new, reading, take, values

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize(
    ("state", "group", "topic"),
    [(SESSIONS, "scoring", TRACES), (CLOSINGS, "assembly", SPANS)],
)
async def test_state_that_a_former_owner_writes_late_does_not_count(
    opening: Opening, kafka: str, state: str, group: str, topic: str
) -> None:
    zombie, owner = await opening(kafka), await opening(kafka)
    former = await reading(zombie, group, topic)
    await zombie.write([new(state, b"of the former owner, in time", b"a")])
    await former.close()
    await assigned(owner.read(group, topic))
    await owner.write([new(state, b"the owner's", b"b")])

    await zombie.write([new(state, b"too late", b"b")])

    assert await all_of(owner, state) == [b"of the former owner, in time", b"the owner's"]


async def test_a_commit_after_the_partition_has_gone_changes_nothing(
    opening: Opening, kafka: str
) -> None:
    first, second = await opening(kafka), await opening(kafka)
    positions = await first.write([new(SPANS, b"%d" % n) for n in range(3)])
    reader = first.read("assembly", SPANS)
    await assigned(reader)
    member = reader._member
    assert member is not None
    member.take_revoked()  # a rebalance took it

    await commit_to(first, "assembly", SPANS, positions[2].offset)
    await reader.close()

    assert (await assigned(second.read("assembly", SPANS)))[0].offset is None


async def test_a_member_whose_join_fails_before_it_owns_anything_is_replaced(
    opening: Opening, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """aiokafka ends its part in the group at an error that it does not know, and says so at the next fetch only."""
    log = await opening(kafka)
    look_up, failures = (
        AIOKafkaClient.coordinator_lookup,
        ["of a kind that aiokafka does not expect"],
    )

    async def failing_once(self: AIOKafkaClient, kind: int, key: str) -> int:
        if failures:
            raise AssertionError(failures.pop())
        return await look_up(self, kind, key)

    monkeypatch.setattr(AIOKafkaClient, "coordinator_lookup", failing_once)
    reader = log.read("assembly", SPANS)
    assert "not expect" in await failed(reader)

    assert (await assigned(reader))[0].offset is None


async def test_a_topic_that_a_starting_broker_does_not_name_yet_is_owned_once_it_does(
    opening: Opening, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await opening(kafka)
    share_out, names = RangePartitionAssignor.assign, [log._cluster.name(SPANS)]

    def lacking(cluster: Any, members: Any) -> Any:
        if names:
            del cluster._partitions[names.pop()]
        return share_out(cluster, members)

    monkeypatch.setattr(RangePartitionAssignor, "assign", lacking)

    async with asyncio.timeout(20):
        assert (await assigned(log.read("assembly", SPANS)))[0].offset is None
    assert not names


async def test_a_member_that_learns_of_no_broker_any_more_is_replaced(
    opening: Opening, kafka: str
) -> None:
    """aiokafka's task for a client's metadata may end; whatever needs another coordinator then waits for ever."""
    log = await opening(kafka)
    first, second = await log.write([new(SPANS, b"1"), new(SPANS, b"2")])
    reader = log.read("assembly", SPANS)
    await assigned(reader)
    await take(reader, 2)
    member = reader._member
    assert member is not None
    await end_metadata(network_client(member.consumer))

    await commit_to(log, "assembly", SPANS, second.offset)  # stored by nobody, as after a rebalance
    assert "no longer finds a broker" in await failed(reader)

    rejoined = await reader.poll(timeout=5)
    assert rejoined.revoked == (0,)
    assert (await assigned(reader))[0].offset is None
    assert values(await take(reader, 2)) == [b"1", b"2"]
    await commit_to(log, "assembly", SPANS, first.offset)
    assert reader.places(unread=False) == {0: first.offset}


async def test_a_writer_that_no_longer_learns_of_any_broker_refuses_no_sender(
    opening: Opening, kafka_node: KafkaNode
) -> None:
    """The sender whose records wait for an answer has gone: nobody else may wait for them."""
    log = await opening(kafka_node.bootstrap, deadline=1.0)
    await eventually_writes(log, new(TRACES, b"first"))
    kafka_node.pause()
    with pytest.raises(LogUnavailable):
        await log.write([new(TRACES, b"of a sender that goes")])
    with pytest.raises(LogUnavailable, match="earlier records"):
        await log.write([new(TRACES, b"another's")])
    producer = log._writer._producer._producer
    assert producer is not None

    await end_metadata(producer.client)
    with pytest.raises(LogUnavailable, match="acknowledged nothing"):
        await log.write([new(TRACES, b"another's")])

    kafka_node.resume()
    await eventually_writes(log, new(TRACES, b"another's, again"))


async def failed(reader: KafkaReader) -> str:
    """What it says when it cannot go on."""
    async with asyncio.timeout(10):
        while True:
            try:
                await reader.poll(timeout=0.1)
            except LogUnavailable as error:
                return str(error)


async def end_metadata(client: AIOKafkaClient) -> None:
    """End the task that keeps the client's metadata."""
    assert client._sync_task is not None
    client._sync_task.cancel()
    await asyncio.wait([client._sync_task])


async def test_an_end_is_as_old_as_the_question_about_it(opening: Opening, kafka: str) -> None:
    """A process that was stopped must not take an answer from before its sleep for news."""
    log = await opening(kafka)
    reader = log.read("assembly", SPANS)
    await assigned(reader)
    await at_end(reader)
    member = reader._member
    assert member is not None

    batch = await at_end(reader)
    asked = member.fetched_ends[0][1]

    assert batch.ends[0] <= asked - 2.0


async def test_a_commit_below_the_oldest_record_counts_the_gap(
    opening: Opening, kafka: str
) -> None:
    telemetry = Telemetry()
    log = await opening(kafka, telemetry=telemetry)
    positions = await log.write([new(SPANS, b"%d" % n) for n in range(6)])
    await commit_to(log, "assembly", SPANS, positions[1].offset)
    await delete_below(kafka, log._cluster.name(SPANS), positions[4].offset)

    reader = log.read("assembly", SPANS)
    async with asyncio.timeout(20):
        while not (batch := await reader.poll(timeout=0.2)).assigned:
            pass

    assert batch.lost == {0: 3}
    assert values(await take(reader, 2)) == [b"4", b"5"]
    assert (
        telemetry.registry.get_sample_value("spanwise_log_gap_records_total", {"topic": SPANS}) == 3
    )


async def test_twenty_mebibytes_that_do_not_compress_come_back(
    opening: Opening, kafka: str
) -> None:
    log = await opening(kafka, deadline=30.0)
    value = random.Random(1).randbytes((20 << 20) - 1024)

    (position,) = await log.write([new(TRACES, value)])

    got = await log.get(position)
    assert got is not None
    assert got.value == value
    reader = await reading(log, "scoring", TRACES)
    assert values(await take(reader, 1)) == [value]


async def test_the_log_waits_for_a_broker_that_is_away(
    opening: Opening, kafka_node: KafkaNode
) -> None:
    kafka_node.kill()
    log = await opening(kafka_node.bootstrap)
    reader = log.read("assembly", SPANS)
    with pytest.raises(LogUnavailable):
        await log.write([new(SPANS, b"early")])
    with pytest.raises(LogUnavailable):
        await reader.poll()

    await asyncio.to_thread(kafka_node.start)
    await eventually_writes(log, new(SPANS, b"there"))

    await assigned(reader)
    assert values(await take(reader, 1)) == [b"there"]


async def test_a_paused_broker_gets_each_record_once(
    opening: Opening, kafka_node: KafkaNode
) -> None:
    """The same call again waits on for what is on its way; others are refused at once meanwhile."""
    log = await opening(kafka_node.bootstrap, deadline=1.0)
    await eventually_writes(log, new(TRACES, b"first"))
    kafka_node.pause()
    record = new(TRACES, b"once")
    with pytest.raises(LogUnavailable):
        await log.write([record])

    began = asyncio.get_running_loop().time()
    with pytest.raises(LogUnavailable):
        await log.write([new(TRACES, b"another's")])
    assert asyncio.get_running_loop().time() - began < 0.5
    with pytest.raises(LogUnavailable):
        await log.write([record])
    kafka_node.resume()
    await eventually_writes(log, record)

    assert await all_of(log, TRACES) == [b"first", b"once"]


async def test_a_named_member_that_comes_back_moves_no_partition(
    opening: Opening, kafka: str
) -> None:
    """`log.kafka.instance`: a restart within the session timeout is not a rebalance."""
    stays = (await opening(kafka, instance="b", partitions=2)).read("assembly", SPANS)
    first = await opening(kafka, instance="a", partitions=2)
    leaves = first.read("assembly", SPANS)
    its = await split(leaves, stays)
    kept: set[int] = {0, 1} - its
    await first.close()

    returned = (await opening(kafka, instance="a", partitions=2)).read("assembly", SPANS)
    owned: set[int] = set()
    async with asyncio.timeout(5):  # less than the session timeout
        while owned != its:
            owned = owned_after(owned, await returned.poll(timeout=0.1))
            batch = await stays.poll(timeout=0.1)
            assert not batch.revoked
    assert stays.owned == kept


async def split(one: KafkaReader, other: KafkaReader) -> set[int]:
    """Poll both until each has one of the two partitions; the first one's."""
    async with asyncio.timeout(30):
        while not (len(one.owned) == len(other.owned) == 1 and one.owned != other.owned):
            await one.poll(timeout=0.1)
            await other.poll(timeout=0.1)
    return set(one.owned)


async def eventually_writes(log: KafkaLog, record: New) -> None:
    """Write it again and again until it works, as a room does."""
    async with asyncio.timeout(30):
        while True:
            try:
                await log.write([record])
            except LogUnavailable:
                await asyncio.sleep(0.2)
            else:
                return


async def delete_below(bootstrap: str, topic: str, offset: int) -> None:
    """As retention does it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=offset)})
    await admin.close()
