"""A trace of many megabytes: scored, though its record would be above what the log takes; cut on the page."""

import contextlib
import json
import socket
import time
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.agents import request
from tests.support.asking import span, trace_id
from tests.support.hostile import bystanders, post
from tests.support.processes import cpu_seconds
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SIZE = 55_000
"""Characters of one call's arguments: less than a value is cut to when it is read."""
PAGE = f"/trace?id={trace_id('large')}"
LARGEST_PAGE = 4 << 20


def calling(number: int) -> Span:
    """A tool call below a root, with large arguments of its own."""
    made = span("large", "", child=f"note {number}")
    arguments = json.dumps({"text": f"{number} " + "'" * SIZE})
    made.attributes.add(key="gen_ai.tool.call.arguments").value.string_value = arguments
    return made


@pytest.mark.parametrize(
    ("calls", "log", "keeps_spans"),
    [(200, "4GiB", True), (150, "32MiB", False)],
    ids=["above every log's limit", "above the limit of a small log"],
)
def test_a_large_trace_is_scored_and_shown_in_part_and_delays_no_other(
    tmp_path: Path, calls: int, log: str, *, keeps_spans: bool
) -> None:
    settings = ("windows.trace.root_grace=1s", "embedder.kind=none", f"log.disk.max_size={log}")
    with Service(tmp_path / "data", *settings) as service:
        for first in range(0, calls, 50):
            made = [calling(number) for number in range(first, min(first + 50, calls))]
            assert post(service.http, request("desk-bot", made))[0] == 200
        root = span("large", "Keep them all. " * 1000)
        assert post(service.http, request("desk-bot", [root]))[0] == 200

        found = service.shown(trace_id("large"), spans=calls + 1)
        metrics = service.metrics()
        with bystanders(service) as toll:
            page = service.text(PAGE, timeout=60)
        assert toll.above(wait=5.0, cpu=5.0, memory=256 << 20) == []
        with bystanders(service) as toll:
            never_read(service)
        assert toll.above(wait=10.0, cpu=60.0, memory=512 << 20) == []

    assert "scored" in {each["outcome"] for each in found["signals"]}
    assert found["trace"]["truncated"]
    assert "truncated" in found["trace"]["gaps"]
    assert len(found["trace"]["tool_calls"]) == calls
    assert (len(found["spans"]) > 0) is keeps_spans
    assert metrics.get('spanwise_poison_records_total{topic="spans"}', 0) == 0
    assert metrics['spanwise_trace_gaps_total{gap="truncated",service="desk-bot"}'] == 1
    assert len(page.encode()) <= LARGEST_PAGE
    assert f"/api/v1/traces/{trace_id('large')}" in page, "where the whole is"


def never_read(service: Service) -> None:
    """Two hundred ask for the page and for the JSON of the trace, and take nothing."""
    host = service.admin.removeprefix("http://")
    name, port = host.split(":")
    paths = (PAGE, f"/api/v1/traces/{trace_id('large')}")

    def is_quiet() -> bool:
        before = cpu_seconds(service.pid)
        time.sleep(2)
        return cpu_seconds(service.pid) - before < 1

    with contextlib.ExitStack() as held:
        for number in range(200):
            client = held.enter_context(socket.create_connection((name, int(port)), timeout=60))
            client.sendall(f"GET {paths[number % 2]} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        for path in ("/", "/api/v1/agents", "/metrics"):
            assert service.text(path, timeout=60)
        service.wait_for("all have their answer or wait for a reader", is_quiet)
