"""A trace of many megabytes on the page: cut to what a browser can show, rendered where it holds nobody up."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.agents import request
from tests.support.asking import span, trace_id
from tests.support.hostile import bystanders, post
from tests.support.processes import cpu_seconds
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SIZE = 7 << 20
SPANS = 500
LARGEST = 4 << 20
PAGE = f"/trace?id={trace_id('s')}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("large")
    with Service(
        folder / "data", "windows.trace.root_grace=500ms", "embedder.kind=none"
    ) as running:
        text = "'" * (SIZE // SPANS)
        spans = [span("s", text, text)]
        for number in range(SPANS):
            child = span("s", "", child=f"lookup {number}")
            child.attributes.add(key="gen_ai.tool.call.arguments").value.string_value = json.dumps(
                {"q": text}
            )
            spans.append(child)
        assert post(running.http, request("desk-bot", spans))[0] == 200
        running.shown(trace_id("s"), spans=SPANS + 1)
        yield running


@pytest.mark.parametrize("path", [PAGE, "/session?id=s&service=desk-bot", "/"])
def test_a_page_stays_small_and_delays_no_other(service: Service, path: str) -> None:
    with bystanders(service) as toll:
        size = len(service.text(path, timeout=60).encode())

    assert size <= LARGEST
    assert toll.above(wait=5.0, cpu=5.0, memory=256 << 20) == []


def test_what_was_cut_is_said(service: Service) -> None:
    page = service.text(PAGE, timeout=60)

    assert f"/api/v1/traces/{trace_id('s')}" in page
    assert "not shown" in page or "left out" in page


def test_a_dozen_at_once_delay_no_other(service: Service) -> None:
    asking = [threading.Thread(target=lambda: service.text(PAGE, timeout=60)) for _ in range(12)]
    with bystanders(service) as toll:
        for each in asking:
            each.start()
        for each in asking:
            each.join()

    assert toll.above(wait=5.0, cpu=40.0, memory=512 << 20) == []


def test_clients_that_never_read_delay_no_other(service: Service) -> None:
    """Two hundred ask for the page and for the JSON of the trace, and take nothing."""
    host = service.admin.removeprefix("http://")
    name, port = host.split(":")
    paths = (PAGE, f"/api/v1/traces/{trace_id('s')}")
    with contextlib.ExitStack() as held, bystanders(service) as toll:
        for number in range(200):
            client = held.enter_context(socket.create_connection((name, int(port)), timeout=60))
            client.sendall(f"GET {paths[number % 2]} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        for path in ("/", "/api/v1/agents", "/metrics"):
            assert service.text(path, timeout=60)
        service.wait_for("all have their answer or wait for a reader", lambda: _is_quiet(service))

    assert toll.above(wait=10.0, cpu=60.0, memory=512 << 20) == []


def _is_quiet(service: Service) -> bool:
    before = cpu_seconds(service.pid)
    time.sleep(2)
    return cpu_seconds(service.pid) - before < 1
