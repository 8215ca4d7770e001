"""Gauges say the same whatever the order in which signals came: the newest turn, and the agent a session has now."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.support.publisher import Publisher
from tests.support.signals import new, signal


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
