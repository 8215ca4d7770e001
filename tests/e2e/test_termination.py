"""SIGTERM as a kubelet sends it: readiness drops first, then the ports close, and nothing that was taken is lost."""

import asyncio
import os
import signal
import socket
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest

from tests.support import plugin
from tests.support.agents import request
from tests.support.asking import asked, span, trace_id
from tests.support.fleet import differing
from tests.support.otlp import PROTOBUF
from tests.support.otlp_server import grpc_server
from tests.support.processes import free_ports
from tests.support.sender import Sender, send
from tests.support.service import Service, children

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

QUICK = ("windows.trace.root_grace=300ms", "embedder.kind=none")
DELAY = "receiver.stop_delay=1m"
"""Longer than any machine needs to look at what a process does meanwhile; a second SIGTERM ends it."""
NOT_SERVING = b"\x08\x02"


def is_open(where: str) -> bool:
    """Whether someone listens there."""
    host, _, port = where.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def test_readiness_drops_while_the_ports_still_take_spans(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *QUICK, "windows.trace.root_grace=10ms", DELAY) as service:
        service.become_ready()
        http = urlsplit(service.http).netloc

        os.kill(service.pid, signal.SIGTERM)

        service.wait_for("readiness drops", lambda: service.status("/readyz") == 503)
        with grpc.insecure_channel(service.grpc) as channel:
            health = channel.unary_unary("/grpc.health.v1.Health/Check", bytes, bytes)
            assert health(b"", timeout=10) == NOT_SERVING
        send(service.grpc, asked("over-grpc", "Where is my order?"))
        post = urllib.request.Request(service.http, asked("over-http", "And mine?"), PROTOBUF)
        with urllib.request.urlopen(post, timeout=10) as answer:
            assert answer.status == 200
            assert (
                answer.headers["connection"] == "close"
            )  # the next request goes to another process
        sent = {trace_id("over-grpc"), trace_id("over-http")}
        service.wait_for("both are scored", lambda: service.scored_traces() == sent)
        os.kill(service.pid, signal.SIGTERM)  # a second one ends the delay
        assert service.wait(30) == 0
    assert not is_open(service.grpc)
    assert not is_open(http)


@pytest.mark.parametrize(
    ("setting", "by"),
    [
        ("log.kind=memory", signal.SIGTERM),
        ("drain_on_stop=true", signal.SIGTERM),
        ("drain_on_stop=true", signal.SIGHUP),
    ],
)
def test_what_will_not_come_back_scores_open_traces_before_it_ends(
    tmp_path: Path, setting: str, by: signal.Signals
) -> None:
    service = Service(tmp_path / "data", "windows.trace.root_grace=10m", setting).start()
    rootless = request("desk-bot", [span("open", "", number=1, child="lookup")])
    send(service.grpc, asked("open", "Where is my order?"), rootless)

    assert service.stop(25.0, by) == 0  # less than what Kubernetes gives a process to end

    closed = {(each["trace_id"], each["closed"]) for each in service.signals() if each["trace_id"]}
    assert closed == {
        (trace_id("open", 0), "root_ended"),  # its root was there: only the grace was cut short
        (trace_id("open", 1), "shutdown"),
    }
    final = [each for each in service.signals() if each["scope"] == "session" and each["final"]]
    assert "open" in {each["session_id"] for each in final}
    assert {"agent_reliability", "work_baseline"} <= {each["evaluator"] for each in final}


def test_a_stop_with_work_of_every_kind_in_hand_loses_nothing(tmp_path: Path) -> None:
    """Open traces, a job in a worker and jobs behind it, undelivered signals, requests half sent, and a busy sender."""
    begun = tmp_path / "begun"
    (away,) = free_ports(1)
    service = Service(
        tmp_path / "data",
        *QUICK,
        f'sinks.otlp={{"endpoint": "127.0.0.1:{away}"}}',
        environment={"PYTHONPATH": str(plugin.obeying_reader(tmp_path / "installed"))},
    )
    whole = [f"whole-{number}" for number in range(5)]
    queued = [f"queued-{number}" for number in range(10)]
    with service:
        send(service.grpc, *(asked(each, "Where is my order?") for each in whole))
        service.wait_for("signals are made", lambda: len(service.scored_traces()) == len(whole))
        rootless = request("desk-bot", [span("open", "", child="lookup")])
        send(service.grpc, rootless, asked("stuck", f"mark-once {begun}"))
        service.wait_for("the worker is at it", begun.exists)
        send(service.grpc, *(asked(each, "Where is my order?") for each in queued))
        flood = Sender(
            [asked(f"flood-{n}", "And mine?") for n in range(20_000)], lambda: service.grpc
        )
        flood.start()
        service.wait_for("it takes some", lambda: flood.acknowledged > 10)
        where = urlsplit(service.http)
        half = socket.create_connection((where.hostname or "", where.port or 0), 10)
        body = asked("half", "Is it there?")
        head = (
            f"POST {where.path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
            f"content-type: {PROTOBUF['content-type']}\r\n\r\n"
        )
        half.sendall(head.encode() + body[:-1])

        began = time.monotonic()
        os.kill(service.pid, signal.SIGTERM)
        service.wait_for("requests are refused", lambda: service.status("/readyz") == 503)
        with half:  # it was in flight
            half.sendall(body[-1:])
            assert half.recv(4096).split()[1] == b"200"
        code = service.wait(45)
        took = time.monotonic() - began
    flood.give_up.set()
    flood.join(30)

    print(f"stopped after {took:.1f} s, {flood.acknowledged} requests of the flood taken")
    assert code == 0
    assert took < 20
    assert service.scored_traces() == {
        trace_id(each) for each in whole
    }  # the rest was work in hand
    taken = [*whole, *queued, "stuck", "half", *(f"flood-{n}" for n in range(flood.acknowledged))]
    asyncio.run(start_again(service, {trace_id(each) for each in taken}, away))


def test_a_kill_of_the_main_process_alone_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    """Its worker, which is at a trace, still lives when the next process takes over the volume."""
    begun = tmp_path / "begun"
    environment = {"PYTHONPATH": str(plugin.obeying_reader(tmp_path / "installed"))}
    service = Service(tmp_path / "data", *QUICK, environment=environment)
    names = [f"whole-{number}" for number in range(10)]
    with service:
        send(service.grpc, asked("busy", f"mark-once {begun}"))
        send(service.grpc, *(asked(each, "Where is my order?") for each in names))
        service.wait_for("the worker is at it", begun.exists)
        (worker,) = children(service.pid)

        os.kill(service.pid, signal.SIGKILL)
        service.wait(10)

    try:
        with service:
            taken = {trace_id(each) for each in ("busy", *names)}
            service.wait_for("all are scored", lambda: taken <= service.scored_traces())
            os.kill(worker, 0)  # it is there all the while
    finally:
        os.kill(worker, signal.SIGKILL)
    assert differing(service.signal_lines()) == 0


async def start_again(service: Service, taken: set[str], port: int) -> None:
    """Every trace that was acknowledged is scored, and every signal reaches the backend that was away."""

    def scored_ids() -> set[str]:
        return {each["id"] for each in service.signals() if each["outcome"] == "scored"}

    def delivered() -> set[str]:
        attributes = (each for record in backend.records() for each in record.attributes)
        return {each.value.string_value for each in attributes}

    def again() -> None:
        with service:
            send(service.grpc, asked("open", "Where is my order?"))
            expected = {*taken, trace_id("open")}
            service.wait_for("all are scored", lambda: expected <= service.scored_traces(), 90)
            service.wait_for("all are delivered", lambda: scored_ids() <= delivered())

    async with grpc_server(port) as backend:
        await asyncio.to_thread(again)
    assert differing(service.signal_lines()) == 0
    closed = {(each["trace_id"], each["closed"]) for each in service.signals()}
    assert (trace_id("open"), "root_ended") in closed  # its first span waited in the log
