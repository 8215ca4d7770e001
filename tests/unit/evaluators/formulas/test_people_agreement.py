"""How far an evaluator and people agree: kappa and rank, from 30 pairs on, and who is no better than chance."""

import random

import pytest

from evaluators.formulas.people_agreement import Agreement, Pair, agreement, kappa
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
