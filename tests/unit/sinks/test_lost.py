"""`lost` counts what a sink never got, not what it was just delivering while the log dropped it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from collector.config.sinks import KafkaSinkConfig
from collector.log.kafka import producer
from collector.log.port import SIGNALS
from collector.sinks.kafka import KafkaSink
from tests.support.eventually import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.signals import hex_of, new, signal
from tests.support.sink_contract import committed, count, delivering

IN_HAND, MORE = 20, 300
SMALL = 1 << 20
"""Its share for signals holds about a hundred and fifty of them."""


@dataclass
class Broker:
    """In the place of aiokafka's producer: takes records at once and acknowledges them when it is open."""

    answers: list[tuple[asyncio.Future[None], str]] = field(default_factory=list[Any])
    acked: set[str] = field(default_factory=set[str])
    is_open: bool = False

    def __call__(self, **settings: object) -> Broker:
        return self

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    @property
    def client(self) -> SimpleNamespace:
        async def fetch_all_metadata() -> SimpleNamespace:
            return SimpleNamespace(topics=lambda: {"spanwise.signals"})

        return SimpleNamespace(fetch_all_metadata=fetch_all_metadata, _sync_task=None)

    async def send(
        self, topic: str, *, headers: Sequence[tuple[str, bytes]], **rest: object
    ) -> asyncio.Future[None]:
        trace_id = dict(headers)["traceparent"].decode().split("-")[1]
        answer = asyncio.get_running_loop().create_future()
        self.answers.append((answer, trace_id))
        if self.is_open:
            self.open()
        return answer

    def open(self) -> None:
        self.is_open = True
        for answer, trace_id in self.answers:
            if not answer.done():
                answer.set_result(None)
                self.acked.add(trace_id)


async def test_what_was_in_hand_while_the_log_dropped_it_is_delivered_and_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = FaultyLog(max_size=SMALL)
    broker = Broker()
    monkeypatch.setattr(producer, "AIOKafkaProducer", broker)
    settings = KafkaSinkConfig(bootstrap_servers="nowhere:9092")
    await log.write([new(signal(trace=f"t-{n}")) for n in range(IN_HAND)])

    async with delivering(log, KafkaSink(settings, timeout=0.2)) as telemetry:
        await eventually(lambda: count(telemetry, "retried") >= IN_HAND)
        for n in range(IN_HAND, IN_HAND + MORE):
            await log.write([new(signal(trace=f"t-{n}"))])
        broker.open()
        await committed(log, IN_HAND + MORE)

    received = broker.acked
    assert {hex_of(f"t-{n}") for n in range(IN_HAND)} <= received
    assert count(telemetry, "acked") == len(received)
    assert count(telemetry, "lost") == IN_HAND + MORE - len(received) > 0
    assert len(log.stored(SIGNALS)) < MORE
