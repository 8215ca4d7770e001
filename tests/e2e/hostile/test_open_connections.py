"""Connections that say nothing, messages that never end: health and other senders go on, and little memory is held."""

import http.client
import resource
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.hostile import bystanders
from tests.support.http2 import EXPORT, MAX_CONCURRENT_STREAMS, RawGrpc
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

IDLE = 300
HEALTH = ("/healthz", "/readyz", "/metrics")
TOKEN = {"authorization": "Bearer correct-horse"}


def connect(address: str, owned: ExitStack) -> socket.socket:
    host, _, port = address.removeprefix("http://").rpartition(":")
    return owned.enter_context(socket.create_connection((host, int(port)), 10))


def statuses(service: Service) -> dict[str, int]:
    """Of health and metrics, each asked on a connection of its own; 0: there was no answer."""
    found: dict[str, int] = {}
    for path in HEALTH:
        asking = http.client.HTTPConnection(urlsplit(service.admin).netloc, timeout=10)
        try:
            asking.request("GET", path)
            found[path] = asking.getresponse().status
        except OSError:
            found[path] = 0
        finally:
            asking.close()
    return found


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /api/v1/agents HTTP/1.1\r\nhost: localhost\r\n",
        b"GET /api/v1/signals/stream HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ],
    ids=["idle", "half a head", "a stream in each of many tabs"],
)
def test_connections_to_the_page_do_not_shut_health_and_metrics(
    tmp_path: Path, begun: bytes
) -> None:
    with Service(tmp_path / "data") as service, ExitStack() as owned:
        service.become_ready()
        for _ in range(IDLE):
            connect(service.admin, owned).sendall(begun)

        assert statuses(service) == dict.fromkeys(HEALTH, 200)


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
            connect(service.grpc, owned)
        files = Path(f"/proc/{service.pid}/fd")
        service.wait_for("they are accepted", lambda: len([*files.iterdir()]) > IDLE, timeout=20)

        assert statuses(service) == dict.fromkeys(HEALTH, 200)


@pytest.mark.parametrize(
    ("path", "settings", "headers", "most"),
    [
        (EXPORT, "receiver.bearer_tokens=[correct-horse]", TOKEN, 64),
        ("/grpc.health.v1.Health/Check", "receiver.bearer_tokens=[correct-horse]", TOKEN, 64),
        (EXPORT, "receiver.max_request=16MiB", {}, 160),
    ],
    ids=["without a token", "of health, which needs none", "of a sender"],
)
def test_messages_that_never_end_hold_no_more_than_admission_gives(
    tmp_path: Path, path: str, settings: str, headers: Mapping[str, str], most: int
) -> None:
    """Half of each message comes. Four requests' worth may be in flight of a sender; of a stranger, nothing."""
    part = bytes(8 << 20)
    with Service(tmp_path / "data", settings) as service, ExitStack() as owned:
        with bystanders(service, headers=headers, senders=bool(headers)) as toll:
            taken = 0
            for _ in range(2):
                connection = owned.enter_context(RawGrpc(service.grpc))
                assert connection.settings[MAX_CONCURRENT_STREAMS] <= 64
                for _ in range(24):
                    stream = connection.open(2 * len(part), path=path)
                    taken += connection.push(stream, part, within=0.2)

        assert toll.unserved == []
        assert toll.peak < most * 1_000_000, f"{toll.peak >> 20} MiB of {taken >> 20} MiB sent"


def test_a_message_that_never_ends_is_ended_after_the_body_timeout(tmp_path: Path) -> None:
    with (
        Service(tmp_path / "data", "receiver.body_timeout=1s") as service,
        RawGrpc(service.grpc) as connection,
    ):
        stream = connection.open(60 << 20)
        connection.push(stream, bytes(1 << 16), within=0.5)
        for _ in range(50):
            connection.read(0.2)
            if stream in connection.ended or connection.closed:
                break

        assert stream in connection.ended
