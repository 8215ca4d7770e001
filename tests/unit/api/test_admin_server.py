"""The admin listener and the process's health."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from collector.api.admin import AdminServer, build_app
from collector.base.errors import ConfigError
from collector.base.families import RuntimeFamilies
from collector.base.lifecycle import Health
from collector.base.telemetry import Telemetry
from collector.config.tree import Admin, Config


def server(port: int = 0) -> AdminServer:
    app = build_app(
        config=Config(),
        exposition=lambda _: (b"x 1\n", "text/plain"),
        health=Health(RuntimeFamilies(Telemetry()).event_loop_lag),
    )
    return AdminServer(app, Admin(port=port), RuntimeFamilies(Telemetry()))


@asynccontextmanager
async def serving() -> AsyncGenerator[Callable[[str, str], Awaitable[httpx.Response]]]:
    """Asks it for a path, with an `Accept-Encoding`."""
    stopping, admin = asyncio.Event(), server()
    admin.bind()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(admin.run(stopping))
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            base = f"http://127.0.0.1:{admin.port}"
            yield lambda path, coding: client.get(base + path, headers={"accept-encoding": coding})
        stopping.set()


async def test_it_serves_until_stopped_and_leaves_signals_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    async with serving() as get:
        answer = await get("/healthz", "gzip")
        during = signal.getsignal(signal.SIGTERM)

    assert answer.json() == {"status": "ok"}
    assert "server" not in answer.headers
    assert before == during == signal.getsignal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("asked", "encoding"),
    [
        ("gzip", "gzip"),
        ("deflate, GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip; q=0.0", None),
        ("identity", None),
        ("", None),
    ],
)
async def test_metrics_are_gzipped_when_asked(asked: str, encoding: str | None) -> None:
    async with serving() as get:
        answer = await get("/metrics", asked)

    assert answer.headers.get("content-encoding") == encoding
    assert answer.content == b"x 1\n"
    assert answer.headers["vary"] == "accept-encoding"


def test_a_taken_port_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(ConfigError) as raised:
            server(port).bind()

    assert str(raised.value) == (
        f"admin.port: 127.0.0.1:{port} is taken by another process; set admin.port to a free one"
    )


async def test_lag_is_how_late_the_heartbeat_woke_up() -> None:
    telemetry = Telemetry()
    times = iter([10.0, 10.25])
    health = Health(RuntimeFamilies(telemetry).event_loop_lag, monotonic=lambda: next(times))

    await health.beat(asyncio.Event(), every=0.01)

    lag = telemetry.registry.get_sample_value("spanwise_event_loop_lag_seconds")
    assert lag is not None
    assert 0.24 <= lag < 0.25
