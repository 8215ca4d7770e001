"""Gauges say the same whatever the order in which signals came: the newest turn, and the agent a session has now."""

from itertools import permutations
from typing import Any

import pytest

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from tests.support.publisher import Publisher
from tests.support.signals import BASE, new, signal


def session(agent: str, score: float, revision: int, **fields: Any) -> Signal:
    return signal("s-1", None, score=score, agent=agent, revision=revision, **fields)


async def test_a_session_that_changes_its_agent_leaves_the_old_one() -> None:
    publisher = Publisher()

    await publisher.publish(session("planner", 0.4, 1, final=False))
    await publisher.publish(session("router", 0.9, 2, final=False, at=BASE + 5))

    assert publisher.value("agent_reliability_ratio", agent="planner") is None
    assert publisher.value("agent_reliability_ratio", agent="router") == pytest.approx(0.9)
    assert publisher.value("window_samples", agent="planner") in (None, 0)


async def test_headline_gauges_do_not_depend_on_the_order_of_arrival() -> None:
    signals = [
        session("planner", 0.4, 1, final=False, at=BASE),
        session("router", 0.9, 2, final=False, at=BASE + 5),
        session("planner", 0.5, 3, final=False, at=BASE + 9),
        signal("s-2", None, score=0.7, agent="planner", at=BASE + 1),
    ]
    seen: list[object] = []
    for order in permutations(signals):
        publisher = Publisher()
        await publisher.publish(*order)
        seen.append(publisher.gauges())

    assert all(each == seen[0] for each in seen)


async def test_the_withdrawal_survives_a_restart() -> None:
    publisher = Publisher()
    await publisher.publish(session("planner", 0.4, 1, final=False))
    await publisher.publish(session("router", 0.9, 2, final=False, at=BASE + 5))
    await publisher.exporter.finish()

    successor = publisher.successor()
    await successor.step()

    assert successor.value("agent_reliability_ratio", agent="planner") is None
    assert successor.value("agent_reliability_ratio", agent="router") == pytest.approx(0.9)


async def test_a_session_that_went_on_elsewhere_leaves_its_weight_to_an_earlier_one() -> None:
    """It keeps its place among those that are held, so that it is the same whenever it went."""
    went = [session("planner", 0.1, 1, final=False, at=BASE + 9)]
    went += [session("router", 0.9, 2, final=False, at=BASE + 10)]
    others = [
        signal(f"s-{n}", None, score=n / 10, agent="planner", at=BASE + n) for n in range(2, 6)
    ]

    seen: list[object] = []
    for order in ([*went, *others], [*others, *went], [*others[:3], *went, others[3]]):
        publisher = Publisher(limits=AgentWindow(sessions=2))
        await publisher.publish(*order)
        assert publisher.value("window_samples", agent="planner") == 2
        assert publisher.value("agent_reliability_ratio", agent="planner") == pytest.approx(0.45)
        seen.append(publisher.gauges())

    assert all(each == seen[0] for each in seen)


async def test_what_is_evicted_does_not_depend_on_when_newer_sessions_went() -> None:
    def turn(name: str, agent: str, at: int) -> Signal:
        return signal(name, None, agent=agent, revision=at, at=BASE + at, final=False)

    old = turn("s-1", "planner", 1)
    second = [turn("s-2", "planner", 2), turn("s-2", "router", 8)]
    third = [turn("s-3", "planner", 3), turn("s-3", "router", 9)]
    late = [old, second[0], third[0], third[1], second[1]]
    seen: list[object] = []
    for order in (late, [*second, *third, old]):
        publisher = Publisher(limits=AgentWindow(sessions=1))
        for each in order:
            await publisher.publish(each)
        seen.append(publisher.gauges())

    assert seen[0] == seen[1]


async def test_a_session_counts_for_one_version_of_its_agent() -> None:
    publisher = Publisher()

    await publisher.publish(session("planner", 0.4, 1, final=False, agent_version="1"))
    await publisher.publish(session("planner", 0.9, 2, final=False, agent_version="2", at=BASE + 5))

    assert publisher.value("agent_reliability_ratio", agent_version="1") is None
    assert publisher.value("agent_reliability_ratio", agent_version="2") == pytest.approx(0.9)


@pytest.mark.parametrize("order", [*permutations(range(3))])
async def test_the_newest_turn_of_a_session_counts_whatever_the_order(
    order: tuple[int, ...],
) -> None:
    """All turns arrived at one log time: their starts, which travel as a header, tell them apart."""
    publisher = Publisher()
    turns = [(signal("s-1", f"t-{n}", score=n / 4), 1_000 + n) for n in range(3)]

    await publisher.log.write([new(turns[n][0], start=turns[n][1]) for n in order])
    await publisher.step()

    assert publisher.value("window_mean_ratio") == pytest.approx(0.5)
