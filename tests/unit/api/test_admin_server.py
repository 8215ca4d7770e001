"""The admin listener: health, metrics, and answers on their way, bounded in bytes and in time."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.responses import Response
from starlette.types import Message

from collector.api import outgoing
from collector.api.admin import AdminServer, build_app
from collector.api.answers import RequestRefused
from collector.api.families import ApiFamilies
from collector.api.off_loop import AT_ONCE, WAITING, OffLoop
from collector.api.outgoing import LARGE, LIMIT, PIECE, Outgoing
from collector.base.families import RuntimeFamilies
from collector.base.lifecycle import Health
from collector.base.telemetry import Telemetry
from collector.config.tree import Admin, Config


@asynccontextmanager
async def serving() -> AsyncGenerator[Callable[[str, str], Awaitable[httpx.Response]]]:
    """Asks it for a path, with an `Accept-Encoding`."""
    families = RuntimeFamilies(Telemetry())
    app = build_app(
        config=Config(),
        exposition=lambda _: (b"x 1\n", "text/plain"),
        health=Health(families.event_loop_lag),
    )
    stopping, admin = asyncio.Event(), AdminServer(app, Admin(port=0), families)
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


async def test_metrics_are_gzipped_when_asked() -> None:
    async with serving() as get:
        for asked, encoding in (
            ("gzip", "gzip"),
            ("deflate, GZIP;q=0.5", "gzip"),
            ("gzip;q=0", None),
            ("gzip; q=0.0", None),
            ("identity", None),
            ("", None),
        ):
            answer = await get("/metrics", asked)

            assert answer.headers.get("content-encoding") == encoding, asked
            assert answer.content == b"x 1\n"
            assert answer.headers["vary"] == "accept-encoding"


async def test_lag_is_how_late_the_heartbeat_woke_up() -> None:
    telemetry = Telemetry()
    times = iter([10.0, 10.25])
    health = Health(RuntimeFamilies(telemetry).event_loop_lag, monotonic=lambda: next(times))

    await health.beat(asyncio.Event(), every=0.01)

    lag = telemetry.registry.get_sample_value("spanwise_event_loop_lag_seconds")
    assert lag is not None
    assert 0.24 <= lag < 0.25


class Clients:
    """Ask an application for answers of a size; a client that reads nothing holds `send` up."""

    def __init__(self) -> None:
        self.telemetry = Telemetry(CollectorRegistry())
        self.body = b""
        self.outgoing = Outgoing(self.app, ApiFamilies(self.telemetry))
        self.reading = asyncio.Event()
        self.reading.set()

    async def app(self, scope: object, receive: object, send: object) -> None:
        await Response(self.body)(scope, receive, send)  # type: ignore[arg-type] # ASGI's own

    async def get(self, size: int) -> tuple[int, list[int]]:
        """Status and the sizes of the pieces of the body."""
        self.body = bytes(size)
        statuses: list[int] = []
        pieces: list[int] = []

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                return
            pieces.append(len(message["body"]))
            await self.reading.wait()

        async def receive() -> Message:
            return {"type": "http.disconnect"}

        await self.outgoing({"type": "http", "method": "GET"}, receive, send)
        (status,) = statuses
        return status, pieces

    @property
    def refused(self) -> float | None:
        return self.telemetry.registry.get_sample_value(
            "spanwise_answers_refused_total", {"reason": "unread"}
        )


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 5 * PIECE, LARGE + 7])
async def test_an_answer_is_sent_whole_in_pieces(size: int) -> None:
    status, pieces = await Clients().get(size)

    assert status == 200
    assert sum(pieces) == size
    assert max(pieces) <= PIECE


async def test_large_answers_that_are_not_read_refuse_other_large_ones_only() -> None:
    clients = Clients()
    clients.reading.clear()
    async with asyncio.TaskGroup() as tasks:
        stuck = [tasks.create_task(clients.get(LIMIT // 4)) for _ in range(4)]
        await asyncio.sleep(0)
        clients.reading.set()
        assert (await clients.get(LARGE + 1))[0] == 503
        assert (await clients.get(LARGE))[0] == 200
        assert clients.refused == 1

    assert [each.result()[0] for each in stuck] == [200] * 4
    assert (await clients.get(LARGE + 1))[0] == 200


async def test_one_answer_alone_may_be_too_large_and_a_slow_client_gives_its_room_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (await Clients().get(LIMIT + 1))[0] == 200
    monkeypatch.setattr(outgoing, "PATIENCE", 0.0)
    monkeypatch.setattr(outgoing, "RATE", 1e12)
    clients = Clients()
    clients.reading.clear()

    await clients.get(LIMIT)

    clients.reading.set()
    assert (await clients.get(LARGE + 1))[0] == 200


async def test_places_are_few_and_those_who_wait_are_bounded() -> None:
    telemetry = Telemetry(CollectorRegistry())
    off_loop = OffLoop(ApiFamilies(telemetry))
    free, inside = asyncio.Event(), 0

    async def visit() -> None:
        nonlocal inside
        async with off_loop.place():
            inside += 1
            await free.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE + WAITING):
            tasks.create_task(visit())
            await asyncio.sleep(0)
        assert inside == AT_ONCE
        with pytest.raises(RequestRefused) as refusal:
            await off_loop.run(lambda: None)
        assert (refusal.value.status, refusal.value.headers) == (503, {"retry-after": "5"})
        free.set()

    assert inside == AT_ONCE + WAITING
    refused = {"reason": "busy"}
    value = telemetry.registry.get_sample_value("spanwise_answers_refused_total", refused)
    assert value == 1
    assert await off_loop.run(lambda: 7) == 7
