"""What goes out over OTLP takes the proxy of the environment on both transports alike, and none to loopback."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import pytest

from collector.base.errors import Retryable
from collector.otlp.client import GrpcTransport, HttpTransport
from collector.otlp.signal import TRACE_SERVICE
from tests.support.otlp_server import grpc_backend, http_backend

KINDS = pytest.mark.parametrize("kind", [GrpcTransport, HttpTransport])


@contextlib.asynccontextmanager
async def recording_proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[list[str]]:
    """The request lines that a proxy got; it refuses each."""
    lines: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines.append(head.partition("\r\n")[0])
        lines.extend(each for each in head.splitlines() if each.lower().startswith("proxy-auth"))
        writer.write(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://me:a%40b@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with server:
        yield lines


async def sent(kind: type[GrpcTransport | HttpTransport], endpoint: str) -> None:
    transport = kind(endpoint, {}, service=TRACE_SERVICE, key="forward.endpoint", timeout=10.0)
    try:
        await transport.export(b"")
    finally:
        await transport.close()


@KINDS
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_host_elsewhere_is_reached_through_the_proxy(
    kind: type[GrpcTransport | HttpTransport], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with recording_proxy(monkeypatch) as lines:
        with pytest.raises(Retryable):
            await sent(kind, f"{scheme}://backend.invalid:4999")

    whole = "POST http://backend.invalid:4999/v1/traces HTTP/1.1"
    tunnel = "CONNECT backend.invalid:4999 HTTP/1."
    plain = kind is HttpTransport and scheme == "http"
    assert lines[0].startswith(whole if plain else tunnel)
    assert lines[1].lower().startswith("proxy-authorization: basic")
    assert lines[1].endswith("bWU6YUBi")


async def test_loopback_is_reached_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        recording_proxy(monkeypatch) as lines,
        grpc_backend() as grpc,
        http_backend() as http,
    ):
        await sent(GrpcTransport, grpc.endpoint)
        await sent(HttpTransport, http.endpoint)

        assert (grpc.tries, http.tries) == (1, 1)
    assert lines == []
