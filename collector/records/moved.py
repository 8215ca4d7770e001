"""How far the scores of each evaluator moved since a moment, the farthest first. Pure.

A score is ranked among those before, as the drop detector ranks it: .5 means no change, below it worse.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEAST = 5  # scores that a side needs to be compared
CLEAR = 3.0  # standard errors from which on a move is more than chance, with some twenty evaluators looked at


class EvaluatorScores(NamedTuple):
    """What one evaluator said of one session, over all its traces."""

    total: float  # of the scores
    scores: int
    judged: int  # scores that pass or fail
    failed: int

    @property
    def score(self) -> float:
        return self.total / self.scores


def summed(
    outcomes: Iterable[tuple[str, float | None, bool | None]],
) -> dict[str, EvaluatorScores]:
    """By evaluator, what outcomes say: (evaluator, score, whether it passed). Those without a score are left out."""
    found: dict[str, EvaluatorScores] = {}
    for name, score, passed in outcomes:
        if score is not None:
            total, scores, judged, failed = found.get(name, (0.0, 0, 0, 0))
            judged, failed = judged + (passed is not None), failed + (passed is False)
            found[name] = EvaluatorScores(total + score, scores + 1, judged, failed)
    return found


Sessions = Sequence[Mapping[str, EvaluatorScores]]  # of each session, by evaluator


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSide:
    sessions: int
    mean: float
    failing: float | None
    """The share of its scores that did not pass; None: they neither pass nor fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    evaluator: str
    before: EvaluatorSide | None
    since: EvaluatorSide | None
    rank: float | None  # the mean rank since among those before, 0 to 1; None: too few on a side
    is_clear: bool  # whether it is farther from .5 than chance explains

    @property
    def shift(self) -> float:
        """How far from the middle, -.5 to .5; below 0 is worse."""
        return 0.0 if self.rank is None else self.rank - 0.5


def moved(before: Sessions, since: Sessions) -> list[Moved]:
    """Every evaluator of either side: what moved clearly first, the farthest at the top."""
    names = {name for session in (*before, *since) for name in session}
    found = [_moved(name, _of(name, before), _of(name, since)) for name in names]
    return sorted(found, key=lambda each: (not each.is_clear, -abs(each.shift), each.evaluator))


def mean_rank(before: Iterable[float], since: Sequence[float]) -> float:
    """The mean share of earlier scores that are lower; equal ones count half."""
    ordered = sorted(before)
    ranks = [
        (bisect_left(ordered, each) + bisect_right(ordered, each)) / 2 / len(ordered)
        for each in since
    ]
    return math.fsum(ranks) / len(ranks)


def share_failing(scores: Iterable[EvaluatorScores]) -> float | None:
    judged = failed = 0
    for each in scores:
        judged += each.judged
        failed += each.failed
    return failed / judged if judged else None


def _of(evaluator: str, sessions: Sessions) -> list[EvaluatorScores]:
    return [session[evaluator] for session in sessions if evaluator in session]


def _moved(evaluator: str, before: list[EvaluatorScores], since: list[EvaluatorScores]) -> Moved:
    rank = None
    is_clear = False
    if min(len(before), len(since)) >= LEAST:
        rank = mean_rank([each.score for each in before], [each.score for each in since])
        n, m = len(before), len(since)
        is_clear = abs(rank - 0.5) > CLEAR * math.sqrt((n + m + 1) / (12 * n * m))
    return Moved(
        evaluator=evaluator, before=_side(before), since=_side(since), rank=rank, is_clear=is_clear
    )


def _side(scores: list[EvaluatorScores]) -> EvaluatorSide | None:
    if not scores:
        return None
    mean = math.fsum(each.score for each in scores) / len(scores)
    return EvaluatorSide(sessions=len(scores), mean=mean, failing=share_failing(scores))
