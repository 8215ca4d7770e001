"""SIGTERM ends the process within its grace, whatever holds a worker, a connection or the event loop."""

import os
import signal
import socket
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support import plugin
from tests.support.asking import asked
from tests.support.hostile import field_of, post, zipped
from tests.support.http2 import RawGrpc
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SOON = ("windows.trace.root_grace=50ms", "embedder.kind=none")
GRACE = 20.0
"""Seconds: twice what the service takes at most by its own limits, for a machine that is busy."""
AWAY = "127.0.0.1:9"


def ends(service: Service) -> None:
    began = time.monotonic()
    assert service.stop(GRACE) in (0, 1)
    assert time.monotonic() - began < GRACE


@pytest.mark.parametrize("order", ["die", "sleep 600"])
def test_while_workers_crash_or_hang(tmp_path: Path, order: str) -> None:
    installed = plugin.obeying_reader(tmp_path / "installed")
    environment = {"PYTHONPATH": str(installed)}
    with Service(tmp_path / "data", *SOON, environment=environment) as service:
        send(service.grpc, *(asked(f"s{n}", order) for n in range(30)))
        time.sleep(1.0)  # workers are at it

        ends(service)


def test_before_the_workers_are_up(tmp_path: Path) -> None:
    with Service(tmp_path / "data", workers=4) as service:
        send(service.grpc, asked("s", "Where?"))

        ends(service)


def test_while_a_request_is_decoded_for_long(tmp_path: Path) -> None:
    body = zipped(field_of(1, field_of(2, b"\x12\x00" * (31 << 20))))
    with Service(tmp_path / "data", *SOON) as service:
        given = (service.http, body, {"content-encoding": "gzip"})
        sending = threading.Thread(target=post, args=given, daemon=True)
        sending.start()
        time.sleep(1.0)  # it has arrived

        ends(service)
    sending.join()


def test_while_every_destination_is_away_and_the_judge_says_nothing(tmp_path: Path) -> None:
    away = (
        f'sinks.kafka={{"bootstrap_servers": "{AWAY}"}}',
        f'sinks.otlp={{"endpoint": "{AWAY}"}}',
        f'forward={{"endpoint": "{AWAY}"}}',
    )
    with (
        OpenAiServer("slow", delay=40) as server,
        Service(tmp_path / "data", *SOON, *away, *server.settings) as service,
    ):
        send(service.grpc, *(asked(f"s{n}", "Where?") for n in range(20)))
        service.wait_for("signals are made", service.signals)
        service.wait_for("the judge is asked", lambda: server.requests, timeout=40)

        ends(service)


def test_while_kafka_was_never_there(tmp_path: Path) -> None:
    """As its log: it may wait for it or end, but not outlive SIGTERM."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        for number, where in enumerate((AWAY, f"127.0.0.1:{mute.getsockname()[1]}")):
            given = ("log.kind=kafka", f"log.kafka.bootstrap_servers={where}")
            service = Service(tmp_path / f"data-{number}", *given)

            def start(service: Service = service) -> None:
                with suppress(AssertionError):  # it is never ready
                    service.start(timeout=40)

            starting = threading.Thread(target=start)
            starting.start()
            time.sleep(3.0)
            try:
                assert service.stop(GRACE) in (0, 1, 2, -signal.SIGTERM)
            finally:
                starting.join(60)


HALF_A_BODY = (
    b"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n"
    b"content-length: 1000\r\n\r\nabc"
)
A_STREAM = b"GET /api/v1/signals/stream HTTP/1.1\r\nhost: localhost\r\n\r\n"


def test_while_connections_stay_open_and_at_a_second_sigterm(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SOON) as service, ExitStack() as owned:
        for _ in range(20):
            owned.enter_context(RawGrpc(service.grpc)).open(1 << 20)
            for url, begun in ((service.http, HALF_A_BODY), (service.admin, A_STREAM)):
                where = urlsplit(url)
                address = (where.hostname or "", where.port or 0)
                owned.enter_context(socket.create_connection(address)).sendall(begun)
        streams = lambda: service.metrics()["spanwise_stream_clients"]  # noqa: E731
        service.wait_for("streams are read", lambda: streams() == 20)
        os.kill(service.pid, signal.SIGTERM)

        ends(service)
