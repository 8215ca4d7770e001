"""What people, or another judge, say beside an evaluator: agreement, and whether a drop is confirmed."""

import math
import random
from itertools import combinations
from statistics import fmean, pstdev

import pytest

from evaluators.formulas.people_agreement import Agreement, Pair, agreement, kappa
from evaluators.formulas.release_verdict import LOOKS, looks_of, rank_of
from evaluators.formulas.second_opinion import (
    CONFIRMS,
    FALSELY,
    error_if_alike,
    opinion_looks,
    verdict_of,
)
from tests.support.table import for_each


def pairs(count: int, *, liked: int, score: float, otherwise: float) -> list[Pair]:
    """The first are liked and have one score, the others have another."""
    return [
        Pair(score, score >= 0.5, True) if n < liked else Pair(otherwise, otherwise >= 0.5, False)
        for n in range(count)
    ]


@for_each(
    "score,otherwise,found_kappa,rank,chance",
    [
        (0.9, 0.1, 1.0, 1.0, False),  # who says the same agrees wholly
        (0.1, 0.9, -1.0, 0.0, True),  # who says the opposite is worse than chance
        (0.9, 0.9, 0.0, 0.5, True),  # an evaluator that passes everything agrees by chance alone
    ],
)
def test_kappa_and_rank(
    score: float, otherwise: float, found_kappa: float, rank: float, chance: bool
) -> None:
    found = agreement(pairs(40, liked=20, score=score, otherwise=otherwise))

    assert (found.samples, found.liked) == (40, 20)
    assert (found.kappa, found.rank, found.is_chance) == (found_kappa, rank, chance)


@for_each("count,liked", [(29, 15), (40, 9), (40, 31)])
def test_few_pairs_say_nothing(count: int, liked: int) -> None:
    found = agreement(pairs(count, liked=liked, score=0.9, otherwise=0.1))

    assert found == Agreement(count, liked, None, None, None)
    assert not found.is_chance


def test_kappa_is_cohens() -> None:
    """A table of two by two: .70 the same, .52 of it by chance."""
    table = (
        [(True, True)] * 45 + [(True, False)] * 15 + [(False, True)] * 15 + [(False, False)] * 25
    )

    assert kappa(table) == pytest.approx((0.70 - 0.52) / (1 - 0.52))


def test_ranks_alone_where_nothing_passes_or_fails() -> None:
    graded = pairs(40, liked=20, score=0.9, otherwise=0.1)

    found = agreement([each._replace(passed=None) for each in graded])

    assert (found.kappa, found.rank) == (None, 1.0)


def test_a_coin_is_found_out_and_a_fair_judge_is_not() -> None:
    """200 judges each over 400 pairs: coins are, judges with a rank of .76 never."""
    source = random.Random(7)

    def judged(shift: float) -> bool:
        liked = [n % 2 == 0 for n in range(400)]
        return agreement(
            [Pair(source.random() + shift * each, None, each) for each in liked]
        ).is_chance

    assert sum(judged(0.0) for _ in range(200)) > 190
    assert sum(judged(0.3) for _ in range(200)) == 0


# --- what a judge's scores say of a drop that others have raised ------------------------------------------------------


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
