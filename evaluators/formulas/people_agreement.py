"""How far an evaluator and people say the same of the same traces or sessions. Pure.

    kappa   Cohen's kappa of "it passed" and "people liked it": 1 is the same, 0 no more than by chance
    rank    the chance that what people liked has a higher score than what they disliked, ties half; .5 is chance

The error of the rank is DeLong's, as for release verdicts.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from evaluators.formulas.release_verdict import rank_of

LEAST = 30  # pairs below which nothing is said
LEAST_OF_EACH = 10  # liked ones, and disliked ones, below which nothing is said
USELESS = 0.6  # a judge whose rank is surely below it is no better than chance
_Z = NormalDist().inv_cdf(0.95)


class Pair(NamedTuple):
    score: float
    passed: bool | None  # None: the evaluator neither passes nor fails
    liked: bool


class Agreement(NamedTuple):
    samples: int
    liked: int
    kappa: float | None  # None: too few pairs in which the evaluator passes or fails
    rank: float | None  # None: too few pairs
    rank_upper: float | None  # its one-sided upper bound at .05

    @property
    def is_chance(self) -> bool:
        return self.rank_upper is not None and self.rank_upper < USELESS


def agreement(pairs: Sequence[Pair]) -> Agreement:
    """The agreement over these pairs, in any order."""
    liked = sorted(each.score for each in pairs if each.liked)
    disliked = sorted(each.score for each in pairs if not each.liked)
    decided = [(each.passed, each.liked) for each in pairs if each.passed is not None]
    if not _are_enough(len(liked), len(disliked)):
        return Agreement(len(pairs), len(liked), None, None, None)
    rank = rank_of(liked, disliked, z=_Z)
    return Agreement(len(pairs), len(liked), kappa(decided), rank.value, rank.upper)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa (Educational and Psychological Measurement 20, 1960); None: too few pairs.

    Where the evaluator passed all of them, agreement by chance is all that there is: kappa is 0.
    """
    liked = sum(theirs for _, theirs in pairs)
    return cohens_kappa(pairs) if _are_enough(liked, len(pairs) - liked) else None


def cohens_kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Of at least one pair. Where both sides say the same of all of them, they agree: 1."""
    count = len(pairs)
    one, other = sum(mine for mine, _ in pairs), sum(theirs for _, theirs in pairs)
    same = sum(mine == theirs for mine, theirs in pairs) / count
    chance = (one * other + (count - one) * (count - other)) / count**2
    return 1.0 if same == 1 else (same - chance) / (1 - chance)


def _are_enough(liked: int, disliked: int) -> bool:
    return liked + disliked >= LEAST and min(liked, disliked) >= LEAST_OF_EACH
