"""While another waits, one service uses no more than its share (`fairness.share`) of the judge's budget."""

import json
from pathlib import Path

import pytest

from tests.support.asking import asked, trace_id
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

CALLS_PER_MINUTE = 12
SETTINGS = (
    "windows.trace.root_grace=100ms",
    "embedder.kind=none",
    f"judge.budget.calls_per_minute={CALLS_PER_MINUTE}",
)
MODEST = "Where is my own?"


@pytest.mark.parametrize("concurrency", [1, 8])
def test_one_service_cannot_spend_the_judges_budget_alone(tmp_path: Path, concurrency: int) -> None:
    """Twenty traces of one service come first; those of another are judged while there is budget.

    The twenty hold all places when the other one comes.
    """
    with OpenAiServer() as server:
        server.open.clear()
        chosen = (*SETTINGS, *server.settings, f"judge.concurrency={concurrency}")
        with Service(tmp_path / "data", *chosen) as service:
            greedy = [
                asked("greedy", f"Where is {n}?", number=n, service="greedy") for n in range(20)
            ]
            send(service.grpc, *greedy, asked("modest", MODEST, service="modest"))

            def scored(*, judged: bool) -> bool:
                return any(
                    each["trace_id"] == trace_id("modest")
                    and (each["method"] == "llm_judge") == judged
                    for each in service.signals()
                )

            service.wait_for("the other one waits", lambda: scored(judged=False), timeout=40)
            server.open.set()
            service.wait_for("the other one is judged", lambda: scored(judged=True), timeout=40)
            calls = [MODEST in json.dumps(each["messages"]) for each in server.requests]

    before = calls[: len(calls) - calls[::-1].index(True)]
    assert before.count(False) <= max(CALLS_PER_MINUTE // 2, concurrency)


def test_a_service_alone_has_the_whole_budget(tmp_path: Path) -> None:
    with (
        OpenAiServer() as server,
        Service(tmp_path / "data", *SETTINGS, *server.settings) as service,
    ):
        send(service.grpc, *[asked("s", f"Where is {n}?", number=n) for n in range(20)])
        service.wait_for(
            "all calls of a minute", lambda: len(server.requests) >= CALLS_PER_MINUTE, 40
        )
