"""A stock OpenTelemetry Collector's records of logs on Kafka: any key, any partition, one that nobody can read."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from collector.config.tree import Config
from tests.support.fleet import Fleet
from tests.support.recorded_signals import signals_of
from tests.support.recordings import requests

pytestmark = [pytest.mark.e2e, pytest.mark.kafka]

RECORDINGS = Path(__file__).parents[1] / "data" / "captures_logs"
FILES = [
    RECORDINGS / each
    for each in (
        "codex/subagent.logs.otlp",
        "codex_tui/session.logs.otlp",
        "claude_code/session.logs.otlp",
    )
]
PARTITIONS = 3
POISON = b"\xff\xff not OTLP"
Ids = dict[tuple[str, str], str]


async def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Each under a key of its own, as the Collector writes them."""
    order = random.Random(15)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for value in values:
        await producer.send(topic, value=value, key=order.randbytes(8))
    await producer.stop()


def ids(signals: list[dict[str, Any]]) -> Ids:
    """The final trace signals."""
    return {
        (each["trace_id"], each["evaluator"]): each["id"]
        for each in signals
        if each["scope"] == "trace" and each["final"]
    }


@pytest.mark.timeout(400)
def test_requests_of_a_collector_become_the_turns_of_their_sessions(
    tmp_path: Path, kafka: str
) -> None:
    config = Config.model_validate({"embedder": {"kind": "none"}})  # as the fleet
    alone = ids(signals_of(config, *FILES))
    values = [each for file in FILES for each in requests(file)]
    random.Random(15).shuffle(values)
    values = [POISON, *values, *values[:3]]
    windows = ("windows.trace.root_grace=15s", "windows.trace.idle=20s")
    with Fleet(tmp_path, kafka, partitions=PARTITIONS) as fleet:
        first = fleet.add("first", "receive", "assemble", "score", "publish", settings=windows)
        second = fleet.add("second", "receive", "assemble", settings=windows)
        asyncio.run(produce(kafka, f"{fleet.prefix}logs", values))

        assert first.come_to(alone, lambda: ids(first.signals()), 150) == alone
        poison = 'spanwise_poison_records_total{topic="logs"}'
        assert [each.metrics().get(poison, 0) for each in (first, second)] in ([1, 0], [0, 1])
