"""How far an evaluator and people agree: kappa and rank, from 30 pairs on, and who is no better than chance."""

import random

import pytest

from evaluators.formulas.people_agreement import Agreement, Pair, agreement, kappa


def pairs(count: int, *, liked: int, score: float, otherwise: float) -> list[Pair]:
    """The first are liked and have one score, the others have another."""
    return [
        Pair(score, score >= 0.5, True) if n < liked else Pair(otherwise, otherwise >= 0.5, False)
        for n in range(count)
    ]


def test_who_says_the_same_agrees_wholly() -> None:
    found = agreement(pairs(40, liked=20, score=0.9, otherwise=0.1))

    assert (found.samples, found.liked, found.kappa, found.rank) == (40, 20, 1.0, 1.0)
    assert not found.is_chance


def test_who_says_the_opposite_is_worse_than_chance() -> None:
    found = agreement(pairs(40, liked=20, score=0.1, otherwise=0.9))

    assert (found.kappa, found.rank) == (-1.0, 0.0)
    assert found.is_chance


@pytest.mark.parametrize(("count", "liked"), [(29, 15), (40, 9), (40, 31)])
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


def test_an_evaluator_that_passes_everything_agrees_by_chance_alone() -> None:
    found = agreement(pairs(60, liked=30, score=0.9, otherwise=0.9))

    assert (found.kappa, found.rank) == (0.0, 0.5)


def test_ranks_alone_where_nothing_passes_or_fails() -> None:
    found = agreement(
        [each._replace(passed=None) for each in pairs(40, liked=20, score=0.9, otherwise=0.1)]
    )

    assert (found.kappa, found.rank) == (None, 1.0)


def test_a_coin_is_found_out_and_a_fair_judge_is_not() -> None:
    """200 judges each over 400 pairs: coins are, judges with a rank of .76 never."""
    source = random.Random(7)

    def judged(shift: float) -> bool:
        return agreement(
            [
                Pair(source.random() + (shift if liked else 0.0), None, liked)
                for liked in (n % 2 == 0 for n in range(400))
            ]
        ).is_chance

    assert sum(judged(0.0) for _ in range(200)) > 190
    assert sum(judged(0.3) for _ in range(200)) == 0
