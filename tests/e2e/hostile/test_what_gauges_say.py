"""What the metrics say of sessions, deliveries and budgets is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import agents
from tests.support.agents import Turn, spans
from tests.support.sender import send
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SOON = ("windows.trace.root_grace=200ms", "embedder.kind=none")
SERVICES = 10
YEAR = 365 * 86_400


def labelled(service: Service, family: str, *parts: str) -> list[float]:
    """Samples of a family whose label sets hold all these parts."""
    return [
        value
        for key, value in service.metrics().items()
        if key.startswith(family) and all(part in key for part in parts)
    ]


def test_a_window_of_a_trace_evaluator_takes_the_newest_turn_of_a_session(tmp_path: Path) -> None:
    """Both turns arrive in one request, so that log time does not tell them apart; the older one fails."""
    with Service(tmp_path / "data", *SOON) as service:
        for number in range(SERVICES):
            name = f"bot-{number}"
            turns = [
                Turn(service=name, session=f"s-{number}", number=n, fails=n == 0) for n in (0, 1)
            ]
            send(
                service.grpc, agents.request(name, [each for turn in turns for each in spans(turn)])
            )
        family, parts = "spanwise_window_mean_ratio", ('evaluator="tool_correctness"',)
        service.wait_for(
            "all have their gauge",
            lambda: len(labelled(service, family, *parts)) == SERVICES,
            timeout=30,
        )
        service.wait_for("both turns are scored", lambda: _scored(service) == 2 * SERVICES)

        newest = {
            number: labelled(service, family, *parts, f'"bot-{number}"')
            for number in range(SERVICES)
        }

    assert newest == {number: [1.0] for number in range(SERVICES)}


def _scored(service: Service) -> float:
    return sum(labelled(service, "spanwise_evaluations_total", 'evaluator="tool_correctness"'))
