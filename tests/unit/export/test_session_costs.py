"""What a successful session costs: the cost of all of them, over those that passed."""

from collections.abc import Iterator

import pytest

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from tests.support.publisher import Publisher
from tests.support.signals import signal

FAMILY = "cost_per_success_usd"


def session(name: str, usd: float | None, score: float) -> Iterator[Signal]:
    if usd is not None:
        yield signal(
            name,
            None,
            score=None,
            evaluator="cost",
            outcome="measured",
            threshold=None,
            metadata={"total": usd, "mean": usd},
        )
    yield signal(name, None, score=score)


FAILED_TOO = [("a", 0.02, 0.9), ("b", 0.03, 0.1), ("c", 0.01, 0.8)]
LATEST = [("a", 9.0, 0.9), ("b", 0.02, 0.1), ("c", 0.03, 0.9), ("b", 0.05, 0.9)]


@pytest.mark.parametrize(
    ("sessions", "most", "usd"),
    [
        pytest.param(FAILED_TOO, 200, 0.03, id="failed sessions cost the successful ones"),
        pytest.param([("a", 0.02, 0.9), ("b", None, 0.9)], 200, 0.02, id="one of unknown cost"),
        pytest.param([("a", 0.02, 0.1)], 200, None, id="without a success there is no series"),
        pytest.param(LATEST, 2, 0.04, id="the newest count, each with its latest signals"),
    ],
)
async def test_what_a_success_costs(
    sessions: list[tuple[str, float | None, float]], most: int, usd: float | None
) -> None:
    publisher = Publisher(limits=AgentWindow(sessions=most))

    for each in sessions:
        await publisher.publish(*session(*each))

    found = publisher.value(FAMILY, service="support-bot", agent="planner")
    assert found == (usd if usd is None else pytest.approx(usd))


async def test_a_restart_keeps_it() -> None:
    publisher = Publisher()
    await publisher.publish(*session("a", 0.02, 0.9), *session("b", 0.03, 0.1))
    await publisher.exporter.finish()

    after = publisher.successor()
    await after.step()
    shown = after.value(FAMILY, service="support-bot", agent="planner")
    await after.publish(*session("c", 0.01, 0.9))

    assert shown == 0.05
    assert after.value(FAMILY, service="support-bot", agent="planner") == pytest.approx(0.03)
