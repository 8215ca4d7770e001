"""Which sessions and which turns of a session the gauges count, beside tests/property/test_headline_order.py."""

from itertools import permutations
from typing import Any

import pytest

from collector.config.tree import AgentWindow
from collector.records.signal import Signal
from tests.support.publisher import Publisher
from tests.support.signals import BASE, new, signal


def session(agent: str, score: float, revision: int, **fields: Any) -> Signal:
    return signal("s-1", None, score=score, agent=agent, revision=revision, **fields)


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
