"""A stock OpenTelemetry Collector as the receiver: its exporter's records, under any key, and one that is no OTLP."""

import asyncio
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from collector.config.tree import Config
from tests.support import agents
from tests.support.fleet import Fleet, differing, scores, turns
from tests.support.recorded_signals import signals_of
from tests.support.recordings import requests, write

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.timeout(400)]

RECORDINGS = Path(__file__).parents[1] / "data" / "captures_logs"
LOGS = [
    RECORDINGS / f"{each}.logs.otlp"
    for each in ("codex/subagent", "codex_tui/session", "claude_code/session")
]
OFFLINE = Config.model_validate({"embedder": {"kind": "none"}})
"""As the fleet."""
POISON = b"\xff\xff not OTLP"


async def produce(bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
    """Each under a key of its own."""
    order = random.Random(15)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    for value in values:
        await producer.send(topic, value=value, key=order.randbytes(8))
    await producer.stop()


def of_traces(signals: list[dict[str, Any]]) -> dict[Any, Any]:
    """But for `runaway`, which depends on what was usual for the agent when the trace closed."""
    found = scores(signals).items()
    return {key: value for key, value in found if key[1] == "trace" and key[3] != "runaway"}


def test_records_of_spans_are_scored_and_one_that_is_none_is_passed_over(
    tmp_path: Path, kafka: str
) -> None:
    """Of a trace each (`partition_traces_by_id`), in a partition that we would not have chosen, and of several."""
    made = [agents.request(turn.service, agents.spans(turn)) for turn in turns(6, 4)]
    sent = [*made[:8], *(first + last for first, last in zip(made[8::2], made[9::2], strict=True))]
    write(tmp_path / "all.otlp", sent)
    alone = of_traces(signals_of(OFFLINE, tmp_path / "all.otlp"))
    with Fleet(tmp_path, kafka, partitions=3) as fleet:
        one = fleet.add("one", "assemble", "score", "publish")
        asyncio.run(produce(kafka, f"{fleet.prefix}spans", [POISON, *sent]))
        assert one.come_to(alone, lambda: of_traces(one.signals()), 90) == alone
        assert one.metrics()['spanwise_poison_records_total{topic="spans"}'] == 1
        (said,) = (line for line in one.output.read_text().splitlines() if "passed over" in line)
        assert "`spans`, partition " in said
    assert differing(one.signal_lines()) == 0


def test_records_of_logs_become_the_turns_of_their_sessions(tmp_path: Path, kafka: str) -> None:
    alone = of_traces(signals_of(OFFLINE, *LOGS))
    values = [each for file in LOGS for each in requests(file)]
    random.Random(15).shuffle(values)
    windows = ("windows.trace.root_grace=15s", "windows.trace.idle=20s")
    with Fleet(tmp_path, kafka, partitions=3) as fleet:
        first = fleet.add("first", "receive", "assemble", "score", "publish", settings=windows)
        second = fleet.add("second", "receive", "assemble", settings=windows)
        asyncio.run(produce(kafka, f"{fleet.prefix}logs", [POISON, *values, *values[:3]]))

        assert first.come_to(alone, lambda: of_traces(first.signals()), 150) == alone
        poison = 'spanwise_poison_records_total{topic="logs"}'
        assert sorted(each.metrics().get(poison, 0) for each in (first, second)) == [0, 1]
