"""The Kafka sink against a real broker that is paused, killed, absent, or refuses."""

import asyncio
import logging
import os
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from aiokafka.structs import ConsumerRecord

from collector.base.errors import Retryable
from collector.config.sinks import KafkaSinkConfig
from collector.log.kafka.client import RateLimited, limit_aiokafka_log
from collector.log.port import FEEDBACK, Position
from collector.records.signal import Signal
from collector.sinks.feedback_delivery import OutgoingFeedback
from collector.sinks.kafka import KafkaSink
from collector.sinks.port import Refused
from tests.support.clocks import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.kafka.topics import create_topic, read_topic
from tests.support.signals import BASE, headers, signal
from tests.support.signals import new as new_record
from tests.support.sink_contract import (
    SinkContract,
    committed,
    count,
    delivering,
    ids,
    outbox,
    published,
    until_delivered,
)

pytestmark = pytest.mark.kafka


def a_sink(bootstrap: str, topic: str, *, timeout: float = 5.0) -> KafkaSink:
    return KafkaSink(KafkaSinkConfig(bootstrap_servers=bootstrap, topic=topic), timeout=timeout)


async def ids_in(bootstrap: str, topic: str) -> list[str]:
    return [dict(each.headers)["ce_id"].decode() for each in await read_topic(bootstrap, topic)]


class _Broker:
    def __init__(self, node: KafkaNode, topic: str) -> None:
        self.node = node
        self.topic = topic

    def sink(self) -> KafkaSink:
        return a_sink(self.node.bootstrap, self.topic, timeout=2.0)

    async def received(self) -> list[str]:
        return await ids_in(self.node.bootstrap, self.topic)

    async def break_off(self) -> None:
        self.node.pause()

    async def mend(self) -> None:
        self.node.resume()

    def poison(self) -> bytes:
        return b'{"x": "' + os.urandom(200_000).hex().encode() + b'"}'


class TestKafkaSink(SinkContract):
    @pytest.fixture
    async def far_end(self, kafka_node: KafkaNode) -> AsyncIterator[_Broker]:
        topic = f"signals-{uuid.uuid4().hex}"
        await create_topic(kafka_node.bootstrap, topic, max_message_bytes="100000")
        yield _Broker(kafka_node, topic)
        kafka_node.resume()


@pytest.fixture
async def topic(kafka: str) -> str:
    name = f"signals-{uuid.uuid4().hex}"
    await create_topic(kafka, name, partitions=3)
    return name


async def test_key_value_and_headers_go_out_without_the_internal_ones(
    kafka: str, topic: str
) -> None:
    sent = published(7)
    assert sent.header.first
    sink = a_sink(kafka, topic)

    await sink.deliver([sent])

    (found,) = await read_topic(kafka, topic)
    assert (found.key, found.value) == (sent.subject.session_id.encode(), sent.json)
    assert found.headers == headers(signal("s-1", "t-7", at=BASE + 7), first=False)
    names = {name for name, _ in found.headers}
    assert names >= {"ce_id", "ce_source", "ce_type", "traceparent", "content-type"}
    await sink.close(5.0)


async def test_a_missing_topic_is_said_clearly_and_waited_for(kafka: str) -> None:
    name = f"late-{uuid.uuid4().hex}"
    sink = a_sink(kafka, name)
    async with asyncio.timeout(5):
        with pytest.raises(Retryable, match=f"topic `{name}` does not exist"):
            await sink.deliver([published(1)])

    await create_topic(kafka, name)
    await until_delivered(sink, [published(1)])

    assert await ids_in(kafka, name) == ids([published(1)])
    await sink.close(5.0)


@pytest.mark.parametrize(("topic_takes", "size"), [(3_000, 12_800), (20 << 20, 2 << 20)])
async def test_the_neighbours_of_a_too_large_record_are_delivered(
    kafka: str, topic_takes: int, size: int
) -> None:
    """The broker refuses the whole batch, not the one record; the client itself refuses what is above its limit."""
    name = f"small-{uuid.uuid4().hex}"
    await create_topic(kafka, name, max_message_bytes=str(topic_takes))
    large = b'"' + os.urandom(size // 2).hex().encode() + b'"'
    records = [published(0), published(1, large), *(published(number) for number in range(2, 40))]
    sink = a_sink(kafka, name, timeout=20.0)

    with pytest.raises(Refused) as refused:
        await sink.deliver(records)

    assert [position.offset for position in refused.value.reasons] == [1]
    assert set(await ids_in(kafka, name)) == set(ids(records)) - set(ids([records[1]]))
    await sink.close(5.0)


async def test_a_broker_killed_under_load_loses_nothing(kafka_node: KafkaNode) -> None:
    await create_topic(kafka_node.bootstrap, "signals", partitions=3)
    log = FaultyLog()
    sink = a_sink(kafka_node.bootstrap, "signals", timeout=2.0)
    found = [signal(f"s-{n % 7}", f"t-{n}", at=BASE + n) for n in range(1500)]

    async with delivering(log, sink, within=90) as telemetry:
        for start in range(0, 1500, 100):
            await log.write([new_record(each) for each in found[start : start + 100]])
            await asyncio.sleep(0.02)
            if start == 700:
                kafka_node.kill()
        await asyncio.sleep(0.5)
        kafka_node.start()  # from the main thread: the broker ends with the thread that started it
        await committed(log, 1500)

    there = await read_topic(kafka_node.bootstrap, "signals")
    assert {dict(each.headers)["ce_id"].decode() for each in there} == {each.id for each in found}
    assert count(telemetry, "acked") == 1500
    assert count(telemetry, "lost") == 0
    assert_order_per_key(there, found)


def assert_order_per_key(there: list[ConsumerRecord], found: list[Signal]) -> None:
    """Each session's signals in the order of the log, repeats of an interrupted batch apart."""
    order: dict[bytes | None, list[str]] = {}
    for each in there:
        order.setdefault(each.key, []).append(dict(each.headers)["ce_id"].decode())
    for key, there_ids in order.items():
        wanted = [each.id for each in found if each.session_id.encode() == key]
        assert list(dict.fromkeys(there_ids)) == wanted


@pytest.fixture
def root_log() -> Iterator[list[logging.LogRecord]]:
    """What reaches the root logger; caplog also listens to the aiokafka logger itself."""
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    limit_aiokafka_log()
    for limited in logging.getLogger("aiokafka").handlers:
        if isinstance(limited, RateLimited):
            limited._passed.clear()  # of the tests before
    handler = Keep()
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


async def test_a_broker_that_never_comes_back_stops_in_bounded_time(
    kafka_node: KafkaNode, root_log: list[logging.LogRecord]
) -> None:
    await create_topic(kafka_node.bootstrap, "signals")
    log = FaultyLog()
    await log.write([new_record(signal(trace=f"t-{n}")) for n in range(50)])

    async with delivering(log, a_sink(kafka_node.bootstrap, "signals", timeout=1.0)) as telemetry:
        await committed(log, 50)
        kafka_node.kill()
        await log.write([new_record(signal(trace=f"u-{n}")) for n in range(400)])
        await eventually(lambda: count(telemetry, "retried") >= 3 * 256)
        before = asyncio.get_running_loop().time()

    assert asyncio.get_running_loop().time() - before < 6
    assert (count(telemetry, "acked"), count(telemetry, "lost")) == (50, 0)
    assert outbox(telemetry, "kafka") == (400, log.clock.now)
    assert log.committed("sink.kafka", "signals", 0).offset == 50
    # The limiter serves the whole process: an earlier test may have used up its first line.
    assert len([r for r in root_log if r.name.startswith("aiokafka")]) < 20


async def test_what_is_in_flight_is_not_sent_a_second_time(kafka_node: KafkaNode) -> None:
    await create_topic(kafka_node.bootstrap, "signals")
    sink = a_sink(kafka_node.bootstrap, "signals", timeout=1.0)
    await sink.deliver([published(0)])
    kafka_node.pause()
    for _ in range(3):
        with pytest.raises(Retryable):
            await sink.deliver([published(1), published(2)])

    kafka_node.resume()
    await until_delivered(sink, [published(1), published(2)])

    assert await ids_in(kafka_node.bootstrap, "signals") == ids(
        [published(0), published(1), published(2)]
    )
    await sink.close(5.0)


async def test_feedback_goes_to_the_same_topic_under_a_type_of_its_own(
    kafka: str, topic: str
) -> None:
    sink = a_sink(kafka, topic)
    headers = (("ce_type", b"spanwise.feedback.v1"), ("ce_id", b"f-1"))
    said = OutgoingFeedback(Position(FEEDBACK, 0, 0), b"t-1", b'{"name":"thumb"}', headers)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(sink.deliver([published(1)]))
        tasks.create_task(sink.deliver_feedback([said]))

    found = {dict(each.headers)["ce_type"]: each for each in await read_topic(kafka, topic)}
    assert found.keys() == {b"spanwise.signal.trace.v1", b"spanwise.feedback.v1"}
    handed = found[b"spanwise.feedback.v1"]
    assert (handed.key, handed.value) == (b"t-1", b'{"name":"thumb"}')
    await sink.close(5.0)
