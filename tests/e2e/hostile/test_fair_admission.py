"""Of the bytes in flight, one sender uses no more than its share (`fairness.share`) while others wait."""

import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.agents import request
from tests.support.asking import asked, span
from tests.support.hostile import post
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

GREEDY, MODEST = "token-of-the-greedy", "token-of-the-modest"


def test_one_token_cannot_hold_the_whole_budget_of_bytes(tmp_path: Path) -> None:
    settings = (f"receiver.bearer_tokens=[{GREEDY},{MODEST}]", "receiver.max_request=4MiB")
    part = bytes((4 << 20) - 1024)
    with Service(tmp_path / "data", *settings) as service, ExitStack() as owned:
        where = urlsplit(service.http)
        for size in (*[len(part)] * 4, 2600):
            made = socket.create_connection((where.hostname or "", where.port or 0), 10)
            owned.enter_context(made)
            made.sendall(
                b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\n"
                b"content-type: application/x-protobuf\r\nauthorization: Bearer %s\r\n"
                b"content-length: %d\r\n\r\n" % (GREEDY.encode(), len(part) + 1000)
            )
            made.sendall(part[:size])
        service.wait_for(
            "bytes are in flight",
            lambda: service.metrics()["spanwise_in_flight_bytes"] > 1 << 20,
            timeout=20,
        )

        body = asked("modest", "Where is my order? " * 200)
        headers = {"authorization": f"Bearer {MODEST}"}
        answers = [post(service.http, body, headers, timeout=10)[0] for _ in range(5)]

    assert answers == [200] * 5


def test_many_senders_of_one_service_leave_others_their_turn(tmp_path: Path) -> None:
    with Service(tmp_path / "data", "receiver.max_request=4MiB") as service:
        over = threading.Event()
        body = request("greedy", [span("g", "x" * 3_000_000)])
        flooding = [
            threading.Thread(
                target=lambda: [post(service.http, body) for _ in iter(over.is_set, True)]
            )
            for _ in range(12)
        ]
        for each in flooding:
            each.start()
        try:
            answers = [
                post(service.http, asked(f"m{n}", "Where?", service="modest"))[0] for n in range(20)
            ]
        finally:
            over.set()
            for each in flooding:
                each.join()

    assert answers == [200] * 20
