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


async def published(*sessions: Iterator[Signal], most: int = 200) -> float | None:
    publisher = Publisher(limits=AgentWindow(sessions=most))
    for signals in sessions:
        await publisher.publish(*signals)
    found = publisher.value(FAMILY, service="support-bot", agent="planner")
    return None if found is None else round(found, 9)


async def test_failed_sessions_cost_the_successful_ones() -> None:
    found = await published(
        session("a", 0.02, 0.9), session("b", 0.03, 0.1), session("c", 0.01, 0.8)
    )

    assert found == 0.03


async def test_a_session_of_unknown_cost_counts_on_neither_side() -> None:
    assert await published(session("a", 0.02, 0.9), session("b", None, 0.9)) == 0.02


async def test_without_a_success_there_is_no_series() -> None:
    assert await published(session("a", 0.02, 0.1)) is None


async def test_the_newest_sessions_count_each_with_its_latest_signals() -> None:
    found = await published(
        session("a", 9.0, 0.9),
        session("b", 0.02, 0.1),
        session("c", 0.03, 0.9),
        session("b", 0.05, 0.9),
        most=2,
    )

    assert found == 0.04


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
