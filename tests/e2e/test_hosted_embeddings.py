"""Embeddings from a model behind a real HTTP server: the judging room gives them, no worker waits for the network."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send as deliver
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MODEL = "openai/text-embedding-3-small"
SETTINGS = (
    "windows.trace.root_grace=200ms",
    "embedder.kind=litellm",
    f"embedder.model={MODEL}",
    "embedder.api_key=none",
)


def make_service(folder: Path, server: OpenAiServer, *settings: str) -> Service:
    return Service(folder, *SETTINGS, f"embedder.base_url={server.url}", *settings)


def send(service: Service, *numbers: int) -> None:
    turns = [agents.Turn(service="bot", session="s-1", number=n) for n in numbers]
    deliver(service.grpc, *agents.requests(turns))


def embedded(service: Service) -> list[dict[str, Any]]:
    return [each for each in service.signals() if each["method"] == "embedding"]


def session_coverage(service: Service) -> Mapping[str, int]:
    """How many outcomes the newest score of the session should rest on, and on how many it does."""
    sessions = [each for each in service.signals() if each["evaluator"] == "agent_reliability"]
    return sessions[-1]["coverage"] if sessions else {}


def covered(service: Service) -> int | None:
    return session_coverage(service).get("present")


def has(service: Service, count: int) -> bool:
    return len(embedded(service)) >= count


def test_they_come_as_final_signals_with_their_cost_and_history_outlives_a_restart(
    tmp_path: Path,
) -> None:
    found: list[dict[str, Any]] = []
    metrics: Mapping[str, float] = {}
    coverage: Mapping[str, int] = {}
    with OpenAiServer() as server:
        for start in range(2):
            with make_service(tmp_path / "data", server) as service:
                for number in (2 * start, 2 * start + 1):
                    send(service, number)
                    wanted = 2 * (number + 1)
                    service.wait_for("embedded", lambda n=wanted: has(service, n))
                service.wait_for("the session", lambda n=wanted: covered(service) == 2 * n - 1)
                found = embedded(service)
                metrics = service.metrics()
                coverage = session_coverage(service)
        asked = Counter(server.embedded)

    assert Counter(each["evaluator"] for each in found) == {"coherence": 4, "loop_detection": 4}
    assert all(each["final"] for each in found)
    first, *later = [each for each in found if each["evaluator"] == "loop_detection"]
    assert first["assumed"] == 1.0
    assert {each["outcome"] for each in found if each is not first} == {"scored"}
    assert [each["metadata"]["window_size"] for each in later] == [1, 2, 3]
    assert len({each["id"] for each in found}) == 8
    used = [each["judge"] for each in found if each["judge"] is not None]
    assert {each["model"] for each in used} == {MODEL}
    assert sum(each["cost_usd"] for each in used) > 0
    assert not server.requests
    assert metrics[f'spanwise_judge_requests_total{{model="{MODEL}",result="ok"}}'] == 2
    # Earlier outputs were embedded with their own trace: nothing is paid for twice.
    assert set(asked.values()) == {1}
    # Its scale is not the local embedder's: session formulas read coherence too.
    # The first turn's loop_detection is assumed: it does not count.
    assert coverage == {"expected": 15, "present": 15}


def test_a_provider_that_fails_ends_in_failed_outcomes(tmp_path: Path) -> None:
    with (
        OpenAiServer(embeddings="500") as server,
        make_service(tmp_path / "data", server) as service,
    ):
        send(service, 0)
        service.wait_for("outcomes", lambda: has(service, 2))
        found = {each["evaluator"]: each for each in embedded(service)}

    assert found["coherence"]["outcome"] == "failed"
    assert found["coherence"]["error"]["type"] == "provider_error"
    assert found["loop_detection"]["assumed"] == 1.0
    assert all(each["final"] for each in found.values())
