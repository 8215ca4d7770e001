"""What the metrics say of sessions, deliveries and budgets is so."""

import time
from pathlib import Path

import pytest

from tests.support import agents
from tests.support.agents import Turn, spans
from tests.support.asking import asked, trace_id
from tests.support.openai_server import OpenAiServer
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
    return service.total("spanwise_evaluations_total", 'evaluator="tool_correctness"')


def test_a_turn_dated_a_year_ahead_removes_no_other_from_its_session(tmp_path: Path) -> None:
    with Service(tmp_path / "data", *SOON) as service:
        for number in (0, 1, YEAR, 2):
            send(service.grpc, asked("s", "Where is it?", number=number))
        ids = {trace_id("s", number) for number in (0, 1, YEAR, 2)}
        service.wait_for(
            "all are scored",
            lambda: ids <= {each["trace_id"] for each in service.signals()},
            timeout=30,
        )

        assert service.come_to(4, lambda: _turns(service)) == 4
        assert service.total("spanwise_starts_clamped_total") == 1


def _turns(service: Service) -> int:
    """Of the newest session signal, how many turns it was made of."""
    counted = [s for s in service.signals() if s["scope"] == "session" and s["coverage"]]
    if not counted:
        return 0
    newest = max(counted, key=lambda each: each["revision"])
    per_turn = newest["coverage"]["expected"]
    alone = min(each["coverage"]["expected"] for each in counted)
    return round(per_turn / alone)


def test_what_the_metrics_have_counted_is_not_lost(tmp_path: Path) -> None:
    """More signals than their share of a small log, all of them read at once.

    The open sessions and the windows share a tenth of it: 1,000 sessions are as many as fit there without windows.
    """
    count = 850
    with Service(tmp_path / "data", *SOON, "log.disk.max_size=16MiB") as service:
        send(service.grpc, *(asked(f"s{n}", "Where is my order? " * 5) for n in range(count)))

        ids = {trace_id(f"s{n}") for n in range(count)}
        service.wait_for(
            "all are delivered",
            lambda: ids <= {each["trace_id"] for each in service.signals()},
            timeout=30,
        )
        service.wait_for("metrics stand still", lambda: _stands_still(service), timeout=20)

        kinds = ("scored", "failed", "not_applicable")
        counted = {s["id"] for s in service.signals() if s["final"] and s["outcome"] in kinds}
        uncounted = len(counted) - service.total("spanwise_evaluations_total")
        lost = service.total("spanwise_signals_total", '"lost"', '"prometheus"')
        assert lost <= uncounted
        assert service.total("spanwise_signals_total", '"lost"', '"jsonl"') == 0


def _stands_still(service: Service) -> bool:
    before = service.total("spanwise_evaluations_total")
    time.sleep(1)
    return before == service.total("spanwise_evaluations_total")


def test_budget_gauges_stand_there_after_a_restart(tmp_path: Path) -> None:
    with OpenAiServer() as server:
        settings = (
            *SOON,
            *server.settings,
            "judge.price.input=1",
            "judge.price.output=1",
            "judge.budget.usd_per_day=5",
        )
        service = Service(tmp_path / "data", *settings)
        with service:
            assert labelled(service, "spanwise_judge_budget_limit_usd") == [5.0]
            send(service.grpc, asked("s", "Where is my order?"))
            service.wait_for("it is judged", lambda: _is_judged(service), timeout=40)
            before = _remaining(service)

        with service:
            assert labelled(service, "spanwise_judge_budget_limit_usd") == [5.0]
            assert before < 5
            service.wait_for("the verdicts are read", lambda: _remaining(service) == before, 10)


def _remaining(service: Service) -> float:
    return service.total("spanwise_judge_budget_remaining_usd")


def _is_judged(service: Service) -> bool:
    """Whether the verdict is in the log: a call under way is only reserved."""
    return any(each["judge"] for each in service.signals())
