"""A session's update costs the same however long its window is."""

import time

import pytest

from evaluators.model import Session
from evaluators.plan import make_plan
from evaluators.run import SessionScorer
from tests.support.evaluating import OURS, a_turn

PLAN = make_plan(OURS, {}, embedder=None)


@pytest.mark.bench
def test_an_update_costs_the_same_in_a_long_session() -> None:
    assert update_ratio() <= 2


def update_ratio() -> float:
    """An update in a window of 1000 traces / in one of 10."""
    return _update_time(1000) / _update_time(10)


def _update_time(n: int) -> float:
    window = [a_turn(f"t{i}", i, {"confidence": (i * 37 % 101) / 101}) for i in range(n)]
    scorer = SessionScorer(PLAN)
    for turn in window:
        scorer.put(turn)
    session = Session(service="s", session_id="s", agent="a", turns=window)
    times: list[float] = []
    for repeat in range(30):
        started = time.perf_counter()
        for i in range(20):
            turn = window[(repeat * 20 + i) % n]
            scorer.put(turn)
            scorer.outcomes(session, closed=False)
        times.append(time.perf_counter() - started)
    return min(times)
