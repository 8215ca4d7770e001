"""Connections that say nothing, request heads without an end, bodies that trickle: health and other senders go on."""

import http.client
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.asking import asked
from tests.support.hostile import PROTOBUF, resident
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

IDLE = 300
HEALTH = ("/healthz", "/readyz", "/metrics")
MB = 1_000_000
ELSEWHERE = "127.0.0.9"
"""Another peer: everything in 127.0.0.0/8 is this machine."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("idle") / "data"
    with Service(folder, "receiver.max_request=4MiB") as running:
        yield running.become_ready()


def connect(url: str, owned: ExitStack, *, source: str = "127.0.0.1") -> socket.socket:
    where = urlsplit(url)
    assert where.hostname is not None
    assert where.port is not None
    made = socket.create_connection((where.hostname, where.port), 10, (source, 0))
    return owned.enter_context(made)


def status(url: str, path: str, *, source: str = "127.0.0.1", body: bytes | None = None) -> int:
    """The answer to one request on a connection of its own; 0: there was none."""
    where = urlsplit(url)
    asking = http.client.HTTPConnection(where.netloc, timeout=10, source_address=(source, 0))
    try:
        asking.request("GET" if body is None else "POST", path, body, PROTOBUF)
        return asking.getresponse().status
    except OSError:
        return 0
    finally:
        asking.close()


@pytest.mark.parametrize("begun", [b"", b"GET /api/v1/agents HTTP/1.1\r\nhost: localhost\r\n"])
def test_idle_connections_do_not_shut_health_and_metrics(service: Service, begun: bytes) -> None:
    with ExitStack() as owned:
        for _ in range(IDLE):
            connect(service.admin, owned).sendall(begun)

        answers = {path: status(service.admin, path) for path in HEALTH}

    assert answers == dict.fromkeys(HEALTH, 200)


def test_idle_grpc_connections_do_not_use_up_the_files_of_the_process(tmp_path: Path) -> None:
    """Without a file to be had no listener accepts anything; many systems start a process with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as owned:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            service = owned.enter_context(Service(tmp_path / "data"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        service.become_ready()
        for _ in range(IDLE):
            connect(f"http://{service.grpc}", owned)
        service.wait_for("they are accepted", lambda: files(service) > IDLE, timeout=20)

        answers = {path: status(service.admin, path) for path in HEALTH}

    assert answers == dict.fromkeys(HEALTH, 200)


def files(service: Service) -> int:
    return len(list(Path(f"/proc/{service.pid}/fd").iterdir()))


def test_open_streams_do_not_shut_health_and_metrics(service: Service) -> None:
    """A page left open in many tabs holds as many live streams."""
    stream = b"GET /api/v1/signals/stream HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with ExitStack() as owned:
        for _ in range(IDLE):
            connect(service.admin, owned).sendall(stream)

        streams = service.come_to(32, lambda: service.metrics()["spanwise_stream_clients"])
        answers = {path: status(service.admin, path) for path in HEALTH}

    assert streams == 32
    assert answers == dict.fromkeys(HEALTH, 200)


@pytest.mark.parametrize("port", ["admin", "http"])
@pytest.mark.parametrize(
    "line",
    [b"x: " + b"a" * 65536, b"\r\n".join(b"x%d: 1" % n for n in range(6000))],
    ids=["one line", "many lines"],
)
def test_a_head_without_an_end_is_cut_off(service: Service, port: str, line: bytes) -> None:
    url = service.admin if port == "admin" else service.http
    before = resident(service.pid)
    sent = 0
    with ExitStack() as owned:
        connection = connect(url, owned)
        connection.settimeout(5)
        connection.sendall(b"GET / HTTP/1.1\r\n")
        try:
            while sent < 64 * MB:
                connection.sendall(line + b"\r\n")
                sent += len(line)
        except OSError:
            pass
        grown = resident(service.pid) - before

    assert sent < 4 * MB
    assert grown < 32 * MB


def hoard(service: Service, owned: ExitStack) -> list[socket.socket]:
    """From elsewhere, take the whole budget of bytes in flight with bodies that then stand still."""
    part = bytes(4 * (1 << 20) - 1024)
    held: list[socket.socket] = []
    for size in (*[len(part)] * 4, 2600):
        connection = connect(service.http, owned, source=ELSEWHERE)
        connection.sendall(
            b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
            b"content-length: %d\r\n\r\n" % (len(part) + 1000)
        )
        connection.sendall(part[:size])
        held.append(connection)
    service.wait_for("the bytes are in flight", lambda: in_flight(service) > 1 << 20, timeout=20)
    time.sleep(0.5)  # the rest of them
    return held


def in_flight(service: Service) -> float:
    return service.metrics()["spanwise_in_flight_bytes"]


def test_one_peer_cannot_hold_the_whole_budget(service: Service) -> None:
    body = asked("bystander", "Where is my order? " * 100)
    with ExitStack() as owned:
        hoard(service, owned)

        answers = [status(service.http, "/v1/traces", body=body) for _ in range(5)]

    assert answers == [200] * 5


def test_a_body_that_stands_still_gives_its_room_back(service: Service) -> None:
    """Long before a minute: it has to come at a least rate."""
    with ExitStack() as owned:
        hoard(service, owned)

        service.wait_for("the room is given back", lambda: in_flight(service) < 1 << 20, timeout=15)
