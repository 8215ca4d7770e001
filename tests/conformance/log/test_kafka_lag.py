"""The lag gauges over a real broker that hangs."""

import asyncio

import pytest

from collector.base.clock import wall
from collector.base.telemetry import Telemetry
from collector.log.families import LogFamilies
from collector.log.lag import LagMeter, WatchedGroup
from collector.log.port import SIGNALS, SPANS, TRACES
from tests.conformance.log.conftest import Opening
from tests.support.kafka.kafka_node import KafkaNode
from tests.support.log_steps import new, reading, take

pytestmark = pytest.mark.kafka


async def test_while_a_broker_hangs_what_waits_grows_old_and_the_rest_is_not_known(
    opening: Opening, kafka_node: KafkaNode
) -> None:
    log = await opening(kafka_node.bootstrap, partitions=2)
    reader = await reading(log, "assembly", SPANS)
    await log.write([new(SPANS, b"waits"), new(TRACES, b"waits")])
    await take(reader, 1)
    watched = [
        WatchedGroup(group="assembly", topic=SPANS),
        WatchedGroup(group="scoring", topic=TRACES),  # no member anywhere
        WatchedGroup(group="sink.jsonl", topic=SIGNALS),
    ]
    telemetry = Telemetry()
    meter = LagMeter(log, watched, families=LogFamilies(telemetry), clock=wall, patience=2.0)

    def shown() -> list[float | None]:
        labels = [{"group": each.group, "topic": each.topic} for each in watched]
        value = telemetry.registry.get_sample_value
        return [value("spanwise_log_lag_seconds", each) for each in labels]

    async def known() -> list[float | None]:
        async with asyncio.timeout(60):
            while None in shown():
                await meter.measure()
        return shown()

    before = await known()
    kafka_node.pause()
    async with asyncio.timeout(10):
        await meter.measure()
    hanging = shown()
    kafka_node.resume()
    after = await known()

    assert before[2] == after[2] == 0
    assert hanging[2] is None
    for n in (0, 1):
        assert 0 < (before[n] or 0) < (hanging[n] or 0) < (after[n] or 0)
