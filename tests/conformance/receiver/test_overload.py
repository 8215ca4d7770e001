"""Senders that are slow or many (H10), and what all hear while scoring is behind or the log is full."""

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
import pytest

from collector.base.bounded_protocol import DEFAULT, Limits
from collector.base.errors import LogFull
from collector.base.families import RuntimeFamilies
from collector.base.http_server import BearerTokens
from collector.base.telemetry import Telemetry
from collector.receiver import overload
from collector.receiver.families import ReceiverFamilies
from collector.receiver.http import HttpApp, HttpServer
from collector.receiver.inflate import protobuf, sniff
from collector.receiver.overload import LEAST, Overload
from collector.receiver.wrong_door import WrongDoor
from collector.records.otlp_signals import TRACES
from tests.support.counted import counted
from tests.support.otlp import body, head, post, span
from tests.support.receiving import connected, export, intake, serving, until

MIB = 1 << 20
MOST_OF_A_BODY = head("content-length: 1000000") + bytes(900_000)
HASTY = Limits(head_timeout=0.5, idle_timeout=0.5)


async def test_h10_a_slow_loris_is_cut_off() -> None:
    """H10: a connection that never ends its head is closed, also when it is used again."""
    async with _server(HASTY, body_timeout=60) as (server, telemetry):
        async with connected(server.port, b"POST /v1/traces HTTP/1.1\r\nhost:") as (reader, _):
            rest = await reader.read()
        async with connected(server.port, head("content-length: 0") + b"POST") as (reader, _):
            answered = await reader.read()

        closed = {"listener": "http", "reason": "slow_head"}
        assert counted(telemetry, "connections_closed_total", **closed) == 2
        assert rest == b""
        assert answered.startswith(b"HTTP/1.1 200")


async def test_h10_a_body_that_does_not_come_is_refused_in_time() -> None:
    """H10: the bytes it held are given back."""
    async with _server(body_timeout=0.05) as (server, telemetry):
        sent = head("content-length: 1000") + b"abc"
        async with connected(server.port, sent) as (reader, _):
            first = await reader.readline()

        assert first.startswith(b"HTTP/1.1 503")
        assert counted(telemetry, "in_flight_bytes") == 0


async def test_h10_a_body_that_comes_too_slowly_is_refused_long_before_its_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H10: also one that came fast first, and though a byte comes now and then."""
    monkeypatch.setattr(overload, "PATIENCE", 0.2)
    async with _server(body_timeout=600) as (server, telemetry):
        async with connected(server.port, MOST_OF_A_BODY) as (reader, writer):
            answer = asyncio.create_task(reader.readline())
            while not answer.done():
                writer.write(b"x")
                await asyncio.sleep(0.01)

        labels = {"transport": "http", "reason": "slow"}
        assert answer.result().startswith(b"HTTP/1.1 503")
        assert counted(telemetry, "in_flight_bytes") == 0
        assert counted(telemetry, "requests_refused_total", **labels) == 1


async def test_a_sender_that_hangs_up_is_counted_and_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with _server(body_timeout=60) as (server, telemetry):
        sent = head("content-length: 1000") + b"abc"
        async with connected(server.port, sent) as (_, writer):
            await until(lambda: counted(telemetry, "in_flight_bytes") == 3)
            writer.transport.abort()
        labels = {"transport": "http", "reason": "hung_up"}
        await until(lambda: counted(telemetry, "requests_refused_total", **labels) == 1)

        assert caplog.records == []
        assert counted(telemetry, "in_flight_bytes") == 0


@asynccontextmanager
async def _server(
    limits: Limits = DEFAULT, *, body_timeout: float
) -> AsyncGenerator[tuple[HttpServer, Telemetry]]:
    telemetry = Telemetry()
    door = WrongDoor(ReceiverFamilies(Telemetry()), grpc_port=lambda: 4317)
    app = HttpApp(
        intake=intake(telemetry=telemetry, body_timeout=body_timeout),
        bearer=BearerTokens(()),
        wrong_door=door,
        paths={"/v1/traces": TRACES},
        host="127.0.0.1",
    )
    server = HttpServer(
        app=app,
        host="127.0.0.1",
        port=0,
        tls=None,
        families=RuntimeFamilies(telemetry),
        limits=limits,
    )
    await server.start()
    yield server, telemetry
    await server.stop(0.1)


async def test_h10_bytes_of_unfinished_bodies_count_as_in_flight() -> None:
    """H10: many slow senders cannot add up."""
    async with serving(max_request=MIB) as served:
        async with AsyncExitStack() as senders:
            for _ in range(4):
                sender = connected(served.receiver.http_port, MOST_OF_A_BODY)
                await senders.enter_async_context(sender)
            await until(lambda: served.counted("in_flight_bytes") >= 3_600_000)

            reply = await post(served.url, bytes(900_000))

        assert reply.status_code == 503
        await until(lambda: served.counted("in_flight_bytes") == 0)


FAR = 1e6
SENT = body(*[span(trace, 1, text="x" * 2000) for trace in range(1, 65)])


async def test_while_scoring_is_behind_a_part_is_asked_to_come_back_later() -> None:
    async with serving(behind=lambda: FAR) as served:
        said = [await export(served.target, SENT) for _ in range(12)]
        over_http = await post(served.url, SENT)

        refused = [each for each in said if each.code is grpc.StatusCode.UNAVAILABLE]
        assert len(said) - len(refused) == int(12 * LEAST)
        assert all(each.delay is not None and 5 <= each.delay <= 14 for each in refused)
        assert over_http.status_code == 503
        assert 5 <= int(over_http.headers["retry-after"]) <= 14
        assert served.counted("requests_refused_total", transport="grpc", reason="behind") == len(
            refused
        )


async def test_after_a_full_log_a_message_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overload, "FULL_FOR", 600.0)
    async with serving() as served:
        served.log.write_failures = [LogFull("full")]
        first = await export(served.target, SENT)
        second = await export(served.target, b"\xff\xff")

        assert {first.code, second.code} == {grpc.StatusCode.UNAVAILABLE}
        monkeypatch.setattr(overload, "FULL_FOR", 0.0)
        assert (await export(served.target, SENT)).code is grpc.StatusCode.OK


@pytest.mark.parametrize("sent", [SENT, zlib.compress(SENT)])
def test_a_refused_request_costs_less_than_half(sent: bytes) -> None:
    spent: dict[bool, float] = {}
    for _ in range(5):
        for refuses in (False, True):
            used = asyncio.run(cpu(sent, refuses=refuses))
            spent[refuses] = min(used, spent.get(refuses, used))

    assert spent[True] <= 0.5 * spent[False]


async def cpu(sent: bytes, *, refuses: bool) -> float:
    overload = Overload(clock=time.monotonic, limit=30, behind=lambda: FAR if refuses else 0.0)
    room = intake(clock=time.monotonic, overload=overload)
    begin = time.thread_time()
    for _ in range(20):
        await room.take(sent, sender="", signal=TRACES, transport="grpc", decode=protobuf(sniff))
    return time.thread_time() - begin
