"""What comes to the wrong port or path is answered with the right one, in words that can be read, and counted."""

import asyncio
import errno
import socket
import struct
from pathlib import Path

import grpc
import httpx
import pytest

from collector.config.tree import TlsConfig
from collector.receiver import grpc_port
from collector.receiver.grpc_port import GrpcPort, is_known
from tests.support.certificates import make
from tests.support.http2 import PREFACE, SETTINGS, frame
from tests.support.otlp import body, post, span, status_of
from tests.support.receiving import Served, connected, export, exported, posted, serving, until

BEGIN = PREFACE + frame(SETTINGS, 0, 0, b"")
HEAD = b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5000000\r\n\r\n"


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "HEAD", "OPTIONS"])
async def test_http1_on_the_grpc_port_is_answered_with_the_other_port_and_protocol(
    method: str,
) -> None:
    async with serving() as served, httpx.AsyncClient(verify=False) as client:
        answer = await client.request(method, f"http://{served.target}/v1/traces", content=b"x")

        assert answer.status_code == 400
        if method != "HEAD":
            assert f"127.0.0.1:{served.receiver.http_port}" in answer.text
            assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in answer.text
        assert served.counted("connections_closed_total", listener="grpc", reason="http1") == 1


async def test_the_answer_arrives_before_a_large_body_was_sent() -> None:
    """A reset would take the answer from a client that still sends."""
    sent = HEAD + b"x" * 5_000_000
    async with serving() as served:
        async with connected(served.receiver.grpc_port, sent) as (reader, writer):
            await writer.drain()
            answer = await reader.read()

        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_no_byte_comes_before_the_sender_has_spoken() -> None:
    """grpc greets each connection in binary, which ended Node's HTTP client."""
    async with (
        serving() as served,
        connected(served.receiver.grpc_port) as (reader, writer),
    ):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await reader.read(1)
        writer.write(HEAD[:4])
        first = await reader.read(8)

        assert first == b"HTTP/1.1"


async def test_a_preface_in_single_bytes_reaches_grpc() -> None:
    async with (
        serving() as served,
        connected(served.receiver.grpc_port) as (reader, writer),
    ):
        for byte in BEGIN:
            writer.write(bytes((byte,)))
            await writer.drain()
            await asyncio.sleep(0)
        length_and_kind = await reader.readexactly(4)

        assert length_and_kind[3] == SETTINGS


@pytest.mark.process
async def test_with_tls_grpc_is_served_and_plain_http_answered(tmp_path: Path) -> None:
    made = make(tmp_path)
    tls = TlsConfig(cert_file=made.server.cert, key_file=made.server.key)
    async with serving(tls=tls) as served, httpx.AsyncClient(verify=False) as client:
        credentials = grpc.ssl_channel_credentials(made.ca.cert.read_bytes())
        said = await export(served.target, body(span()), credentials=credentials)
        answer = await client.post(f"http://{served.target}/v1/traces")

        assert said.code is grpc.StatusCode.OK
        assert answer.status_code == 400
        assert f"https://127.0.0.1:{served.receiver.http_port}" in answer.text


async def test_connections_that_are_reset_leave_no_file_open() -> None:
    async with serving() as served:
        before = open_files()
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", served.receiver.grpc_port)) as made:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                made.sendall(BEGIN)
        said = await export(served.target, body(span()))

        assert said.code is grpc.StatusCode.OK
        await until(lambda: open_files() <= before + 8)


async def test_silent_connections_are_bounded_in_time_and_number() -> None:
    handed: list[socket.socket] = []
    reasons: list[str] = []
    listener = socket.create_server(("127.0.0.1", 0))
    port = GrpcPort(
        listener=listener,
        hand=handed.append,
        refusal=str,
        closed=reasons.append,
        most=2,
        wait=0.5,
    )
    port.open()
    silent = [socket.create_connection(listener.getsockname()) for _ in range(3)]
    await until(lambda: len(reasons) == 3)
    for each in silent:
        each.settimeout(10)
        assert each.recv(1) == b""
        each.close()
    port.close()

    assert reasons == ["too_many", "slow_head", "slow_head"]
    assert handed == []


class FullOnce(socket.socket):
    """Has no file for its first connection."""

    refused = False

    def accept(self) -> tuple[socket.socket, object]:
        if not self.refused:
            self.refused = True
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


async def test_without_a_free_file_it_rests_and_accepts_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_port, "_PAUSE", 0.01)
    handed: list[socket.socket] = []
    listener = FullOnce()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = GrpcPort(listener=listener, hand=handed.append, refusal=str, closed=lambda _: None)
    port.open()
    with socket.create_connection(listener.getsockname()) as made:
        made.sendall(BEGIN)
        await until(lambda: bool(handed))
        assert handed[0].recv(3) == b"PRI"  # unread
        handed[0].close()
    port.close()


def test_the_installed_grpcio_has_the_hook_as_it_is_called_here() -> None:
    """A newer grpcio in the lock: try it, then raise `BEYOND` in collector/receiver/grpc_port.py."""
    assert is_known()


@pytest.mark.parametrize(
    ("version", "platform"),
    [("1.75.9", "linux"), ("2.0.0", "linux"), ("1.85.1", "win32"), ("", "linux")],
)
def test_no_other_grpcio_is_called(version: str, platform: str) -> None:
    assert not is_known(version, platform)


async def test_with_an_unknown_grpcio_the_port_is_grpcs_own(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("collector.receiver.grpc.is_known", lambda: False)
    said, _ = await exported(body(span()))

    assert said.code is grpc.StatusCode.OK
    assert "HTTP/1" in caplog.text


def misdirected(served: Served, reason: str) -> float:
    return served.counted("requests_misdirected_total", transport="http", reason=reason)


def answered(served: Served, code: str) -> float:
    return served.counted("requests_total", transport="http", code=code)


@pytest.mark.parametrize("path", ["/v1/traces/", "//v1/traces", "/v1//traces//"])
async def test_slashes_too_many_do_no_harm(path: str) -> None:
    async with serving() as served:
        reply = await post(served.url.removesuffix("/v1/traces") + path, body(span()))

        assert reply.status_code == 200
        assert len(served.log.spans()) == 1


@pytest.mark.parametrize("path", ["/", "/v1/traces/v1/traces", "/v1/trace", "/v2/traces"])
async def test_another_path_is_answered_with_the_right_one(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving() as served:
        base = served.url.removesuffix("/v1/traces")
        replies = [await post(base + path, body(span())) for _ in range(2)]

        assert {each.status_code for each in replies} == {404}
        assert "/v1/traces" in status_of(replies[0]).message
        assert (misdirected(served, "path"), answered(served, "NOT_FOUND")) == (2, 2)
        assert caplog.text.count("The HTTP port got a request") == 1


async def test_a_form_that_cannot_be_read_is_counted() -> None:
    reply, served = await posted(b"x", headers={"content-type": "text/plain"})

    assert reply.status_code == 415
    assert (misdirected(served, "media_type"), answered(served, "INVALID_ARGUMENT")) == (1, 1)


async def test_a_grpc_exporter_on_the_http_port_is_answered_with_the_mistake() -> None:
    async with serving() as served:
        said = await export(f"127.0.0.1:{served.receiver.http_port}", body(span()))

        assert said.code is grpc.StatusCode.UNIMPLEMENTED
        assert f"gRPC is served on port {served.receiver.grpc_port}" in said.message
        assert misdirected(served, "http2") == 1
