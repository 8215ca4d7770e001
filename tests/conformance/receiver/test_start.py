"""How the receiver starts, with whom it speaks (TLS, mutual TLS; certificates are made here), and how it leaves."""

import asyncio
import logging
import shutil
import signal
import socket
import ssl
import threading
from pathlib import Path

import grpc
import httpx
import pytest

from collector.base.errors import ConfigError
from collector.base.telemetry import Telemetry
from collector.config.tree import ReceiverConfig, TlsConfig
from collector.receiver.receiver import Receiver
from collector.receiver.splitter import Splitter
from tests.support.certificates import Certificates, make
from tests.support.otlp import PROTOBUF, body, span
from tests.support.received_log import ReceivedLog
from tests.support.receiving import Said, call, export, serving


def receiver(**settings: object) -> Receiver:
    """Not started."""
    return Receiver(
        log=ReceivedLog(),
        config=ReceiverConfig.model_validate(
            {"grpc": {"port": 0}, "http": {"port": 0}, **settings}
        ),
        splitter=Splitter(max_item=1000),
        telemetry=Telemetry(),
        clock=lambda: 0.0,
    )


@pytest.mark.parametrize("half", ["grpc", "http"])
async def test_a_taken_port_is_one_clear_line(half: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ConfigError) as caught:
            await receiver(**{half: {"port": port}}).start()

    message = str(caught.value)
    assert message == (
        f"receiver.{half}: cannot listen on 127.0.0.1:{port}: Address already in use;"
        f" stop what listens there or set receiver.{half}.port"
    )


async def test_a_host_that_is_not_ours_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match=r"receiver.http: cannot listen on 203\.0\.113\.1:0"):
        await receiver(http={"host": "203.0.113.1", "port": 0}).start()


async def test_nothing_is_left_behind_by_a_stop() -> None:
    """Signal handlers, root logging, tasks: uvicorn is a guest."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    root = list(logging.getLogger().handlers)

    async with serving() as served:
        assert (await export(served.target, body(span()))).code is grpc.StatusCode.OK
        assert {n: signal.getsignal(n) for n in handlers} == handlers
        threads = threading.active_count()
        assert len(asyncio.all_tasks()) > 1

    assert {n: signal.getsignal(n) for n in handlers} == handlers
    assert logging.getLogger().handlers == root
    assert threading.active_count() <= threads
    leftover = [task for task in asyncio.all_tasks() if "receiver" in task.get_name()]
    assert leftover == []
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", served.receiver.http_port))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.fail("these tests make their certificates with the openssl binary: install it")
    return make(tmp_path_factory.mktemp("certificates"))


def tls(certificates: Certificates, *, mutual: bool) -> TlsConfig:
    return TlsConfig(
        cert_file=certificates.server.cert,
        key_file=certificates.server.key,
        client_ca_file=certificates.ca.cert if mutual else None,
    )


async def both(
    certificates: Certificates, settings: TlsConfig, client: str | None
) -> tuple[Said, int | None]:
    """What gRPC and HTTP say to a client that shows this certificate; HTTP None = no handshake."""
    pair = getattr(certificates, client) if client else None
    credentials = grpc.ssl_channel_credentials(
        certificates.ca.cert.read_bytes(),
        pair.key.read_bytes() if pair else None,
        pair.cert.read_bytes() if pair else None,
    )
    context = ssl.create_default_context(cafile=str(certificates.ca.cert))
    if pair:
        context.load_cert_chain(pair.cert, pair.key)
    async with serving(tls=settings) as served:
        said = await export(served.target, body(span()), credentials=credentials, timeout=20)
        url = served.url.replace("http:", "https:")
        async with httpx.AsyncClient(verify=context, timeout=20) as http:
            try:
                status = (await http.post(url, content=body(span()), headers=PROTOBUF)).status_code
            except httpx.TransportError:
                status = None
        return said, status


@pytest.mark.process
async def test_plain_text_is_not_spoken_where_tls_is_set(certificates: Certificates) -> None:
    """G26."""
    async with serving(tls=tls(certificates, mutual=False)) as served:
        said = await export(served.target, body(span()), timeout=20)
        with pytest.raises(httpx.TransportError):
            async with httpx.AsyncClient(timeout=20) as http:
                await http.post(served.url, content=body(span()), headers=PROTOBUF)

        assert said.code is grpc.StatusCode.UNAVAILABLE
        assert served.log.written == []


@pytest.mark.process
@pytest.mark.parametrize(
    ("client", "mutual", "code", "status"),
    [
        (None, False, grpc.StatusCode.OK, 200),
        ("client", True, grpc.StatusCode.OK, 200),
        ("stranger", True, grpc.StatusCode.UNAVAILABLE, None),
        (None, True, grpc.StatusCode.UNAVAILABLE, None),
    ],
)
async def test_tls_serves_all_and_mutual_tls_those_the_authority_vouches_for(
    certificates: Certificates,
    client: str | None,
    mutual: bool,
    code: grpc.StatusCode,
    status: int | None,
) -> None:
    """G26."""
    said, http_status = await both(certificates, tls(certificates, mutual=mutual), client)

    assert (said.code, http_status) == (code, status)


@pytest.mark.process
async def test_a_bad_tls_file_is_one_clear_line(certificates: Certificates, tmp_path: Path) -> None:
    missing, garbage = tmp_path / "missing.pem", tmp_path / "garbage.pem"
    garbage.write_text("not a certificate")
    good = tls(certificates, mutual=False)
    for wrong, message in (
        ({"cert_file": missing}, r"receiver\.tls\.cert_file: cannot read .*missing\.pem"),
        ({"cert_file": garbage}, r"are not a certificate and its unencrypted key"),
        ({"key_file": certificates.stranger.key}, r"are not a certificate and its unencrypted key"),
        ({"client_ca_file": garbage}, r"receiver\.tls\.client_ca_file: .* holds no certificate"),
    ):
        with pytest.raises(ConfigError, match=message):
            await receiver(tls=good.model_copy(update=wrong)).start()


async def test_while_it_leaves_it_takes_spans_says_so_and_ends_connections_over_http() -> None:
    async with (
        serving(stop_delay="5m") as served,
        grpc.aio.insecure_channel(served.target) as channel,
        httpx.AsyncClient(verify=False, headers=PROTOBUF) as client,
    ):
        before = await client.post(served.url, content=body(span(1, 1)))
        at_once = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(served.receiver.leave(at_once))
            await asyncio.sleep(0)

            health = await call(channel, b"", method="/grpc.health.v1.Health/Check")
            taken = await call(channel, body(span(1, 2)))
            after = await client.post(served.url, content=body(span(1, 3)))

            assert not leaving.done()
            at_once.set()

    assert health.body == b"\x08\x02", "not serving"
    assert taken.code is grpc.StatusCode.OK
    assert "connection" not in before.headers
    assert (after.status_code, after.headers["connection"]) == (200, "close")
    assert len(served.log.spans()) == 3


async def test_without_a_delay_it_leaves_at_once() -> None:
    async with serving(stop_delay=None) as served, asyncio.timeout(5):
        await served.receiver.leave(asyncio.Event())
