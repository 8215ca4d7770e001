"""A drop that free scores cannot explain: the judge is asked about more sessions, agrees, and the ticket is a page."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents
from tests.support.openai_server import OpenAiServer
from tests.support.sender import send as deliver
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

SETTINGS = (
    "windows.trace.root_grace=200ms",
    "windows.agent.settle=1s",
    "judge.sample=0.5",
    "judge.budget.calls_per_minute=100000",
    "embedder.kind=none",
)
OPINION = 'spanwise_drop_second_opinion{agent="support",service="bot"}'
COUNTED = (
    'spanwise_evaluations_total{agent="support",evaluator="task_completion",outcome="%s",'
    'sample="%s",scope="trace",service="bot"}'
)


def send(service: Service, name: str, numbers: range) -> None:
    turns = [agents.Turn(service="bot", session=f"{name}-{n}", number=n) for n in numbers]
    deliver(service.grpc, *agents.requests(turns))


def test_the_judge_is_asked_about_a_drop_and_agrees_though_the_service_restarts(
    tmp_path: Path,
) -> None:
    """The answers are polite and wrong: nothing fails more than before."""
    with OpenAiServer() as server:
        settings = (*SETTINGS, *server.settings)
        with Service(tmp_path / "data", *settings) as service:
            send_until(service, "good", "a past of judged sessions", has_past, 0)
            server.low = " of bad-"
            wrong = send_until(service, "bad", "the drop", dropped, 0)
            service.wait_for("the question", lambda: service.metrics().get(OPINION) == -1)
            send(service, "bad", range(wrong, wrong + 8))
            service.wait_for("answers beyond the sample", lambda: counted(service, "fail") >= 2)
            sent = {f"bad-{n}" for n in range(wrong + 8)}
            service.wait_for("no call is under way", lambda: sent <= ended(service))
        with Service(tmp_path / "data", *settings) as service:
            last = send_until(service, "bad", "the opinion", agreed, wrong + 8)
            (agent,) = service.get("/api/v1/agents")["items"]
            words = agent["second_opinion"]["words"]
            # A bad session or two may come before the one with which the drop began.
            assert re.fullmatch(
                r"the judge agrees: task_completion 0\.(7\d|80) -> 0\.20 over (20|40) sessions",
                words,
            )
            sent = {f"bad-{n}" for n in range(last)}
            service.wait_for("all has been asked", lambda: sent <= ended(service))
            twice = {each["session_id"] for each in service.signals() if asked_again(each)}
    # Two calls a trace, the extraction and the verdict; as many again where the judge is checked against itself.
    once, more = 2, 2 * 2
    for name in {*twice, *(f"bad-{n}" for n in range(200))}:
        assert server.asked_about(f"of {name}?") <= (more if name in twice else once)
    assert twice


def ended(service: Service) -> set[str]:
    """Sessions that the judge was asked about, or will not be."""
    return {
        each["session_id"]
        for each in service.signals()
        if each["evaluator"] == "task_completion" and each["final"]
    }


def asked_again(signal: dict[str, Any]) -> bool:
    return "again" in (signal["judge"] or ())


def counted(service: Service, outcome: str, sample: str = "more") -> float:
    return service.metrics().get(COUNTED % (outcome, sample), 0.0)


def has_past(service: Service) -> bool:
    """Of the first sessions of a new agent, those beyond the sample are judged, too."""
    return counted(service, "pass") >= 15 and counted(service, "pass", "base") >= 15


def dropped(service: Service) -> bool:
    drifts = service.metrics().items()
    return any(name.startswith("spanwise_drift_detected") and value for name, value in drifts)


def agreed(service: Service) -> bool:
    return service.metrics().get(OPINION) == 1


def send_until(
    service: Service, name: str, what: str, holds: Callable[[Service], bool], first: int
) -> int:
    """Sends four sessions, and the next once these are scored, until that holds; returns the next one's number."""
    sent = first

    def step() -> bool:
        nonlocal sent
        if holds(service):
            return True
        seen = {each["session_id"] for each in service.signals()}
        if sent == first or f"{name}-{sent - 1}" in seen:
            send(service, name, range(sent, sent + 4))
            sent += 4
        return False

    service.wait_for(what, step, 120)
    return sent
