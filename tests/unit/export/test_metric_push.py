"""The process's metrics on their way to a backend: both transports, failures, and the stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from collector.base.telemetry import Telemetry
from collector.config.crosscheck import crosscheck
from collector.config.tree import Config, MetricsTarget
from collector.doctor.connectivity import undeliverable
from collector.export.metric_push import MetricPush
from collector.otlp.signal import METRICS_SERVICE
from tests.support.loopback import Reply, Stub, stub
from tests.support.otlp_server import Backend, over_grpc
from tests.unit.otlp.test_metric_stream import points

NAME = ("spanwise_asked_total", ())


@pytest.fixture
async def backend() -> AsyncIterator[Stub]:
    async with stub() as made:
        made.answer = lambda _asked: Reply(200, "")
        yield made


_made: list[Stand] = []


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    while _made:
        await _made.pop().push.close()


class Stand:
    def __init__(self, endpoint: str, **settings: Any) -> None:
        fields = {"endpoint": endpoint, "protocol": "http", "temporality": "delta", **settings}
        self.telemetry = Telemetry()
        self.asked = self.telemetry.counter("asked", "How often.")
        _made.append(self)
        self.push = MetricPush(
            MetricsTarget.model_validate(fields),
            telemetry=self.telemetry,
            clock=lambda: 1_800_000_000.0,
            instance="here:4390",
        )

    def exports(self, result: str) -> float | None:
        name = "spanwise_metric_exports_total"
        return self.telemetry.registry.get_sample_value(name, {"result": result})


async def test_a_missed_interval_is_in_the_next(backend: Stub) -> None:
    stand = Stand(backend.url, headers={"x-key": "k"})
    for status in (200, 503, 200):
        backend.replies = [Reply(status, "")]
        stand.asked.inc()
        await stand.push.push()

    sent = [points(each.raw)[NAME].as_double for each in backend.requests]
    assert sent == [1.0, 1.0, 2.0]
    assert (stand.exports("sent"), stand.exports("failed")) == (2.0, 1.0)
    assert backend.requests[0].path == "/v1/metrics"
    assert backend.requests[0].headers["x-key"] == "k"


async def test_what_is_refused_is_counted_and_not_sent_for_ever(backend: Stub) -> None:
    stand = Stand(backend.url)
    backend.replies = [Reply(400, "")]
    stand.asked.inc()
    await stand.push.push()
    await stand.push.push()

    assert points(backend.requests[1].raw)[NAME].as_double == 0.0
    assert stand.exports("refused") == 1.0


async def test_a_stop_sends_what_is_left(backend: Stub) -> None:
    stand = Stand(backend.url, interval=3600)
    stopping = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(stand.push.run(stopping))
        stand.asked.inc(7)
        stopping.set()

    (request,) = backend.requests
    assert points(request.raw)[NAME].as_double == 7.0


async def test_over_grpc_the_metrics_service_gets_them() -> None:
    async with over_grpc(Backend(), METRICS_SERVICE.method) as server:
        stand = Stand(server.endpoint, protocol="grpc")
        stand.asked.inc()
        await stand.push.push()

    (body,) = server.requests
    assert points(body)[NAME].as_double == 1.0


async def test_a_family_that_is_not_there_is_named(
    backend: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    stand = Stand(backend.url, families=["spanwise_asked_total", "spanwise_askd_total"])
    stopping = asyncio.Event()
    stopping.set()
    await stand.push.run(stopping)

    assert [each.message for each in caplog.records] == [
        "metrics.otlp.families: no family is called `spanwise_askd_total` yet"
    ]


async def test_validate_tries_the_endpoint(backend: Stub, tmp_path: Any) -> None:
    def config(**target: Any) -> Config:
        metrics = {"otlp": {"protocol": "http", **target}}
        settings = {"data_dir": str(tmp_path), "metrics": metrics, "sinks": {"jsonl": None}}
        return Config.model_validate(settings)

    assert await undeliverable(config(endpoint=backend.url)) == []
    (line,) = await undeliverable(config(endpoint="http://127.0.0.1:1"))
    assert line.startswith("metrics.otlp.endpoint: ")
    (wrong,) = crosscheck(config(endpoint="host:4318"))
    assert wrong.startswith("metrics.otlp.endpoint: with protocol http")
