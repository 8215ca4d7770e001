"""What a judge's scores say of a drop that others have raised."""

import math
from itertools import combinations
from statistics import fmean, pstdev

import pytest

from evaluators.formulas.release_verdict import LOOKS, looks_of, rank_of
from evaluators.formulas.second_opinion import (
    CONFIRMS,
    FALSELY,
    error_if_alike,
    opinion_looks,
    verdict_of,
)

BEFORE = [0.2, 0.4, 0.6, 0.8] * 15


@pytest.mark.parametrize(
    "scores", [[1, 2, 3, 4, 5, 6, 7], [1, 1, 2, 3, 3, 3, 4], [1, 1, 1, 1, 1, 1, 1]]
)
def test_the_error_of_samples_that_are_alike_is_that_of_all_ways_to_divide_them(
    scores: list[float],
) -> None:
    ranks: list[float] = []
    for chosen in combinations(range(7), 3):
        one, other = (
            [scores[at] for at in range(7) if (at in chosen) is side] for side in (True, False)
        )
        ranks.append(rank_of(one, other).value)

    assert fmean(ranks) == pytest.approx(0.5)
    assert error_if_alike(scores[:3], scores[3:]) == pytest.approx(pstdev(ranks), abs=1e-12)


def test_what_it_may_falsely_confirm_is_below_one_in_fifty_drops() -> None:
    assert tuple(FALSELY) == LOOKS
    assert sum(FALSELY.values()) < 0.02


def test_a_look_has_the_rank_and_lower_bound_of_a_release_and_an_upper_bound_that_confirms() -> (
    None
):
    since = [0.2, 0.4, 0.4, 0.6, 0.8] * 16
    taken = opinion_looks(since[:20], BEFORE)
    looks = opinion_looks(since, BEFORE, taken=taken)

    assert [each.sessions for each in looks] == [20, 40, 80]
    assert looks[:1] == taken
    for look, release in zip(looks, looks_of(since, BEFORE), strict=True):
        assert look[:2] == release[:2]
        assert look.lower == release.lower
        error = error_if_alike(since[: look.sessions], BEFORE)
        assert look.upper == pytest.approx(look.rank + CONFIRMS[look.sessions] * error)


@pytest.mark.parametrize(
    ("since", "verdict", "looks"),
    [
        ([0.2] * 20, "confirmed", 1),
        ([0.2] * 19, "undecided", 0),
        (BEFORE * 3, "not_confirmed", 4),
        (BEFORE[:40], "undecided", 2),
        # The first look that decides decides.
        ([0.2] * 20 + [0.8] * 140, "confirmed", 4),
    ],
)
def test_the_verdict(since: list[float], verdict: str, looks: int) -> None:
    found = opinion_looks(since, BEFORE)

    assert len(found) == looks
    assert verdict_of(found) == verdict


def test_a_judge_that_always_says_the_same_sees_no_loss() -> None:
    looks = opinion_looks([1.0] * 160, [1.0] * 100)

    assert verdict_of(looks) == "not_confirmed"
    assert not any(math.isnan(each.upper) for each in looks)
