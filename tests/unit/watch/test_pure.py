"""Bounds, the drift detector, the memory of ids."""

import random

import pytest

from collector.watch.windows.target import RecentIds
from evaluators.formulas.distribution import bounds, empirical_bernstein, wilson
from evaluators.formulas.objective_missed import Detector


def test_wilson_matches_published_values() -> None:
    """Newcombe (1998), table I, method 3: 81 of 263 and 1 of 29."""
    assert wilson(81, 263)[1:] == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(1, 29)[1:] == pytest.approx((0.0061, 0.1718), abs=5e-5)
    assert wilson(0, 20)[1:] == pytest.approx((0.0, 0.1611), abs=5e-5)


def test_empirical_bernstein_by_hand() -> None:
    """n = 4, mean 0.5, V = 1/15 at 0.2 0.4 0.6 0.8: the radius exceeds 1, so the bounds are clipped."""
    assert empirical_bernstein([0.2, 0.4, 0.6, 0.8]) == (0.5, 0.0, 1.0)
    found = empirical_bernstein([0.4, 0.6] * 500)
    radius = (2 * (10 / 999) * 4.382026634673881 / 1000) ** 0.5 + 7 * 4.382026634673881 / (3 * 999)
    assert found.mean == pytest.approx(0.5)
    assert found.lower == pytest.approx(0.5 - radius)
    assert found.upper == pytest.approx(0.5 + radius)


def test_pass_fail_series_get_wilson_graded_ones_bernstein() -> None:
    assert bounds([]) is None
    assert bounds([1.0, 0.0, 1.0]) == wilson(2, 3)
    assert bounds([1.0, 0.5]) == empirical_bernstein([1.0, 0.5])
    assert bounds([0.3]) == (0.3, 0.0, 1.0)


def alarms(scores: list[float], objective: float = 0.9) -> list[int]:
    """The looks at which the detector alarms, begun afresh after each."""
    found: list[int] = []
    detector = Detector()
    for look, score in enumerate(scores, 1):
        detector.feed(score, objective)
        if detector.alarmed:
            found.append(look)
            detector = Detector()
    return found


def coin(rng: random.Random, mean: float, count: int) -> list[float]:
    return [float(rng.random() < mean) for _ in range(count)]


def graded(rng: random.Random, mean: float, count: int) -> list[float]:
    return [rng.betavariate(10 * mean, 10 * (1 - mean)) for _ in range(count)]


def test_false_alarms_are_rare_over_thirty_days() -> None:
    """0.025 per 30 days at 0.92, at most one at exactly the objective."""
    rng = random.Random(11)
    at_baseline = [len(alarms(coin(rng, 0.92, 28_800))) for _ in range(4)]
    at_objective = [len(alarms(coin(rng, 0.90, 28_800))) for _ in range(4)]
    scored = [len(alarms(graded(rng, 0.92, 28_800))) for _ in range(2)]

    assert sum(at_baseline) + sum(scored) == 0
    assert sum(at_objective) <= 2


def test_a_drop_is_found_as_fast_as_the_specification_says() -> None:
    """Median to detect 0.92 -> 0.80: about 210 pass/fail scores, 45 graded ones."""
    rng = random.Random(13)

    def median(draw: list[list[float]]) -> int:
        return sorted((alarms(scores) or [9999])[0] for scores in draw)[len(draw) // 2]

    assert median([coin(rng, 0.80, 2000) for _ in range(41)]) <= 260
    assert median([graded(rng, 0.80, 2000) for _ in range(41)]) <= 45


def test_recent_ids_are_the_newest_only() -> None:
    recent = RecentIds(2)

    assert [recent.add(each) for each in "aba"] == [True, True, False]
    assert recent.add("c")  # "b" was not met for longest
    assert not recent.add("a")
    assert recent.add("b")
    assert len(recent) == 2
