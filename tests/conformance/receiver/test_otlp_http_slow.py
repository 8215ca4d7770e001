"""OTLP over HTTP, clients that are slow, many or not welcome: rows H10 and H11 of the conformance table."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from collector.base.bounded_protocol import DEFAULT, Limits
from collector.base.families import RuntimeFamilies
from collector.base.http_server import BearerTokens
from collector.base.telemetry import Telemetry
from collector.receiver import overload
from collector.receiver.families import ReceiverFamilies
from collector.receiver.http import HttpApp, HttpServer
from collector.receiver.intake import Intake
from collector.receiver.splitter import Splitter
from collector.receiver.wrong_door import WrongDoor
from collector.records.otlp_signals import TRACES
from tests.support.otlp import body, span
from tests.support.otlp_http import JSON, PROTOBUF, one_span, post, status_of
from tests.support.received_log import ReceivedLog
from tests.support.receiving import serving, until

MIB = 1 << 20


HASTY = Limits(head_timeout=0.5, idle_timeout=0.5)


async def test_h10_a_slow_loris_is_cut_off() -> None:
    """H10: a connection that never ends its head is closed, also when it is used again."""
    async with _server(HASTY, body_timeout=60) as (server, telemetry):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/traces HTTP/1.1\r\nhost:")
        async with asyncio.timeout(30):
            rest = await reader.read()
        writer.close()
        again, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n"
            b"content-type: application/x-protobuf\r\n\r\nPOST"
        )
        async with asyncio.timeout(30):
            answered = await again.read()
        writer.close()

        closed = {"listener": "http", "reason": "slow_head"}
        assert telemetry.registry.get_sample_value("spanwise_connections_closed_total", closed) == 2
        assert rest == b""
        assert answered.startswith(b"HTTP/1.1 200")


async def test_h10_a_body_that_does_not_come_is_refused_in_time() -> None:
    """H10: the bytes it held are given back."""
    async with _server(body_timeout=0.05) as (server, telemetry):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n"
            b"content-type: application/x-protobuf\r\n\r\nabc"
        )
        async with asyncio.timeout(30):
            first = await reader.readline()
        writer.close()

        assert first.startswith(b"HTTP/1.1 503")
        assert telemetry.registry.get_sample_value("spanwise_in_flight_bytes") == 0


async def test_h10_a_body_that_comes_too_slowly_is_refused_long_before_its_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H10: also one that came fast first, and though a byte comes now and then."""
    monkeypatch.setattr(overload, "PATIENCE", 0.2)
    async with _server(body_timeout=600) as (server, telemetry):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n"
            b"content-type: application/x-protobuf\r\n\r\n" + bytes(900_000)
        )
        answer = asyncio.create_task(reader.readline())
        async with asyncio.timeout(60):
            while not answer.done():
                writer.write(b"x")
                await asyncio.sleep(0.01)
        writer.close()

        labels = {"transport": "http", "reason": "slow"}
        assert answer.result().startswith(b"HTTP/1.1 503")
        assert telemetry.registry.get_sample_value("spanwise_in_flight_bytes") == 0
        assert telemetry.registry.get_sample_value("spanwise_requests_refused_total", labels) == 1


async def test_a_sender_that_hangs_up_is_counted_and_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with _server(body_timeout=60) as (server, telemetry):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n"
            b"content-type: application/x-protobuf\r\n\r\nabc"
        )
        value = telemetry.registry.get_sample_value
        await until(lambda: value("spanwise_in_flight_bytes") == 3)
        writer.transport.abort()
        labels = {"transport": "http", "reason": "hung_up"}
        await until(lambda: value("spanwise_requests_refused_total", labels) == 1)

        assert caplog.records == []
        assert value("spanwise_in_flight_bytes") == 0


@asynccontextmanager
async def _server(
    limits: Limits = DEFAULT, *, body_timeout: float
) -> AsyncGenerator[tuple[HttpServer, Telemetry]]:
    telemetry = Telemetry()
    intake = Intake(
        log=ReceivedLog(),
        max_request=MIB,
        splitter=Splitter(max_item=MIB),
        families=ReceiverFamilies(telemetry),
        clock=lambda: 0.0,
        body_timeout=body_timeout,
    )
    door = WrongDoor(ReceiverFamilies(Telemetry()), grpc_port=lambda: 4317)
    app = HttpApp(
        intake=intake,
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
        writers: list[asyncio.StreamWriter] = []
        for _ in range(4):
            _, writer = await asyncio.open_connection("127.0.0.1", served.receiver.http_port)
            writer.write(
                b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n"
                b"content-type: application/x-protobuf\r\n\r\n" + bytes(900_000)
            )
            writers.append(writer)
        held = served.telemetry.registry.get_sample_value
        await until(lambda: (held("spanwise_in_flight_bytes") or 0) >= 3_600_000)

        reply = await post(served.url, bytes(900_000))

        assert reply.status_code == 503
        for writer in writers:
            writer.close()
        await until(lambda: held("spanwise_in_flight_bytes") == 0)


async def test_h10_connections_are_kept_alive() -> None:
    """H10."""
    async with serving() as served, httpx.AsyncClient(verify=False) as client:
        for _ in range(3):
            reply = await client.post(served.url, content=body(span()), headers=PROTOBUF)
            assert reply.status_code == 200
            assert "connection" not in reply.headers


async def test_h11_there_is_no_cors() -> None:
    """H11: browsers do not export to it: a preflight gets 405 and no permission."""
    async with serving() as served, httpx.AsyncClient(verify=False) as client:
        reply = await client.options(
            served.url,
            headers={"origin": "http://x", "access-control-request-method": "POST"},
        )

        assert reply.status_code == 405
        assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_what_is_in_flight_finishes_and_new_requests_get_503() -> None:
    """G23, over HTTP."""
    async with serving() as served:
        served.log.gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            early = group.create_task(post(served.url, body(span(1, 1))))
            await until(lambda: served.log.waiting == 1)
            served.receiver.stop_accepting()
            refused = await post(served.url, body(span(1, 2)))
            stopping = group.create_task(served.receiver.stop(5))
            served.log.gate.set()

        assert stopping.done()
        assert early.result().status_code == 200
        assert refused.status_code == 503
        assert "retry-after" in refused.headers
        assert served.log.spans() == [span(1, 1)]


async def test_a_bad_token_is_401() -> None:
    """G26, over HTTP."""
    async with serving(bearer_tokens=("one",)) as served:
        good = await post(served.url, body(span()), {**PROTOBUF, "authorization": "Bearer one"})
        wrong = await post(served.url, body(span()), {**PROTOBUF, "authorization": "Bearer two"})
        missing = await post(served.url, one_span(), JSON)

        assert (good.status_code, wrong.status_code, missing.status_code) == (200, 401, 401)
        assert missing.headers["www-authenticate"] == "Bearer"
        assert status_of(missing).code == 16
        assert served.count("http", "unauthenticated") == 2
