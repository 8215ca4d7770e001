"""While others wait, one sender or service uses no more than its share of bytes, memory, budget and worker time."""

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support import plugin
from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.hostile import post
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

ELSEWHERE = "127.0.0.9"
"""Another peer: everything in 127.0.0.0/8 is this machine."""
GREEDY, MODEST = ({"authorization": f"Bearer token-of-the-{who}"} for who in ("greedy", "modest"))
TOKENS = "receiver.bearer_tokens=[token-of-the-greedy,token-of-the-modest]"


@pytest.mark.parametrize("by", ["token", "peer"])
def test_one_sender_cannot_hold_the_whole_budget_of_bytes(tmp_path: Path, by: str) -> None:
    """With bodies that then stand still, which give their room back long before a minute."""
    settings = (TOKENS,) if by == "token" else ()
    greedy, modest = (GREEDY, MODEST) if by == "token" else ({}, {})
    source = "127.0.0.1" if by == "token" else ELSEWHERE
    part = bytes((4 << 20) - 1024)
    with (
        Service(tmp_path / "data", *settings, "receiver.max_request=4MiB") as service,
        ExitStack() as owned,
    ):
        where = urlsplit(service.http)
        address = (where.hostname or "", where.port or 0)
        head = [
            "POST /v1/traces HTTP/1.1",
            *("host: localhost", "content-type: application/x-protobuf"),
            *(f"{name}: {value}" for name, value in greedy.items()),
            f"content-length: {len(part) + 1000}",
        ]
        for size in (*[len(part)] * 4, 2600):
            made = owned.enter_context(socket.create_connection(address, 10, (source, 0)))
            made.sendall("\r\n".join((*head, "", "")).encode() + part[:size])

        def in_flight() -> float:
            return service.metrics()["spanwise_in_flight_bytes"]

        service.wait_for("bytes are in flight", lambda: in_flight() > 1 << 20, timeout=20)
        body = asked("modest", "Where is my order? " * 200)
        answers = [post(service.http, body, modest, timeout=10)[0] for _ in range(5)]
        service.wait_for("the room is given back", lambda: in_flight() < 1 << 20, timeout=15)

    assert answers == [200] * 5


def open_trace(service: str, number: int, spans: int) -> bytes:
    """A trace whose root does not come; it takes memory by its spans, whose bytes stay in the log."""
    session = f"{service}-{number}"
    return request(service, [span(session, "", child=f"lookup {each}") for each in range(spans)])


def test_a_full_buffer_closes_the_traces_of_whoever_filled_it(tmp_path: Path) -> None:
    settings = ("windows.trace.idle=10m", "windows.memory=4MiB", "embedder.kind=none")
    with Service(tmp_path / "data", *settings) as service:

        def closed(name: str) -> float:
            reason = ('reason="memory"', f'service="{name}"')
            return service.total("spanwise_traces_closed_total", *reason)

        send(service.grpc, *(open_trace("modest", number, 100) for number in range(10)))
        send(service.grpc, *(open_trace("greedy", number, 1_000) for number in range(60)))
        service.wait_for("memory is short", lambda: closed("greedy") >= 30)

        assert closed("modest") == 0


def test_one_service_cannot_spend_the_judges_budget_alone(tmp_path: Path) -> None:
    """Twenty traces of one service come first and hold all places; those of another have their share."""
    most, mine = 12, "Where is my own?"
    settings = (
        *("windows.trace.root_grace=100ms", "embedder.kind=none", "judge.concurrency=1"),
        f"judge.budget.calls_per_minute={most}",
    )
    with OpenAiServer() as server:
        server.open.clear()
        with Service(tmp_path / "data", *settings, *server.settings) as service:
            greedy = [asked("g", f"Where is {n}?", number=n, service="greedy") for n in range(20)]
            send(service.grpc, *greedy, asked("modest", mine, service="modest"))

            def methods() -> set[str]:
                signals = service.signals()
                return {s["method"] for s in signals if s["trace_id"] == trace_id("modest")}

            service.wait_for("the other one waits", methods, timeout=40)
            server.open.set()
            service.wait_for("it is judged", lambda: "llm_judge" in methods(), timeout=40)
            calls = [mine in json.dumps(each["messages"]) for each in server.requests]

    before = calls[: len(calls) - calls[::-1].index(True)]
    assert before.count(False) <= most // 2


def test_a_service_gets_its_share_of_worker_time_and_no_more(tmp_path: Path) -> None:
    """A minute of one service's work is there first."""
    environment = {"PYTHONPATH": str(plugin.obeying_reader(tmp_path / "installed"))}
    settings = ("windows.trace.root_grace=100ms", "embedder.kind=none")
    with Service(tmp_path / "data", *settings, environment=environment) as service:
        slow = (asked("slow", "sleep 2", number=number, service="slow") for number in range(30))
        send(service.grpc, *slow)
        time.sleep(1)  # they are closed first
        send(service.grpc, *(asked("good", "hello", number=number) for number in range(3)))

        wanted = {trace_id("good", number) for number in range(3)}
        service.wait_for("others are scored", lambda: wanted <= service.scored_traces())
        assert len(service.scored_traces() - wanted) < 15
