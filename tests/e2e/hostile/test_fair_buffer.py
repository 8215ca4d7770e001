"""While others wait, one service uses no more of `windows.memory` than its share (`fairness.share`)."""

from pathlib import Path

import pytest

from tests.support.agents import request
from tests.support.asking import span
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def open_trace(service: str, number: int, spans: int) -> bytes:
    """A trace whose root does not come; it takes memory by its spans, whose bytes stay in the log."""
    session = f"{service}-{number}"
    return request(service, [span(session, "", child=f"lookup {each}") for each in range(spans)])


def closed_for_memory(service: Service, name: str) -> float:
    return service.total("spanwise_traces_closed_total", 'reason="memory"', f'service="{name}"')


def test_a_full_buffer_closes_the_traces_of_whoever_filled_it(tmp_path: Path) -> None:
    settings = ("windows.trace.idle=10m", "windows.memory=4MiB", "embedder.kind=none")
    with Service(tmp_path / "data", *settings) as service:
        for number in range(10):
            send(service.grpc, open_trace("modest", number, 100))
        for number in range(60):
            send(service.grpc, open_trace("greedy", number, 1_000))
        service.wait_for(
            "memory is short", lambda: closed_for_memory(service, "greedy") >= 30, timeout=60
        )

        assert closed_for_memory(service, "modest") == 0
