"""May a release go on? The rank of its sessions' scores among those of the version before. Pure.

Rank: the chance that a session of the candidate scores better than one of the baseline, ties half; .5 is as good. Its
standard error is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988) for two independent samples. Sessions
fail in clumps, so of a release it grows by what follows from the first autocorrelation of each side's sessions; that of
the candidate, of which few are known, is at least the baseline's. So few say little of their own spread, too: the
bounds are those of Student's t, with as many degrees of freedom as there are independent sessions (Welch).

There are four looks, at 20, 40, 80 and 160 sessions of the candidate, each one-sided at .05 / 4. A look is taken once,
over what is there then. Between looks the verdict does not change, and a fail or a pass stays: whoever asks every ten
seconds gains no false alarm.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist, fmean
from typing import Literal, NamedTuple

LOOKS = (20, 40, 80, 160)  # sessions of the candidate at which is decided
MIN_BASELINE = 20
MARGIN = 0.1
"""How far below .5 the rank may lie for the release to pass."""
Z = NormalDist().inv_cdf(1 - 0.05 / len(LOOKS))
Decision = Literal["pass", "fail", "inconclusive"]
Reason = Literal["too_few_candidate", "too_few_baseline", "undecided", "low_coverage"]


class Rank(NamedTuple):
    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseVerdict:
    """What the looks so far decided."""

    verdict: Decision
    reason: Reason | None  # why it is inconclusive
    rank: Rank | None  # at the look that decided, else at the last one; None: there was none
    used: int  # sessions of the candidate at that look
    next_look: int | None  # sessions at the next one; None: nothing more is decided


class Look(NamedTuple):
    """A look at a version beside the one before it. Stored by order: append only."""

    sessions: int  # of the candidate, one of `LOOKS`
    rank: float
    lower: float
    upper: float


def looks_of(
    candidate: Sequence[float],
    baseline: Sequence[float],
    *,
    left_out: int = 0,
    taken: Sequence[Look] = (),
    clumped: bool = False,
) -> tuple[Look, ...]:
    """Those that were taken, and those that are due now.

    Args:
        candidate: Scores in [0, 1], in the order in which its sessions came.
        baseline: Those of the version before, in the same order. Below `MIN_BASELINE` no look is taken.
        left_out: Sessions of the candidate of which too little is seen for a score. While these are more than half, no
            look is taken: blind never passes.
        taken: Earlier looks at the same two versions.
        clumped: Whether sessions may fail in clumps, which makes the bounds wider.
    """
    last = taken[-1].sessions if taken else 0
    due = [look for look in LOOKS if last < look <= len(candidate)]
    if not due or len(baseline) < MIN_BASELINE or left_out > len(candidate):
        return tuple(taken)
    ranks = (rank_of(candidate[:look], baseline, clumped=clumped) for look in due)
    return (*taken, *(Look(look, *rank) for look, rank in zip(due, ranks, strict=True)))


def release_verdict(
    candidate: Sequence[float],
    baseline: Sequence[float],
    *,
    margin: float = MARGIN,
    left_out: int = 0,
    taken: Sequence[Look] | None = None,
) -> ReleaseVerdict:
    """The verdict over a candidate's scores; the arguments are those of `looks_of`.

    `margin`: above 0, at most .5. `taken`: all looks that there are; None: they are taken now.
    """
    looks = (
        looks_of(candidate, baseline, left_out=left_out, clumped=True) if taken is None else taken
    )
    for sessions, *bounds in looks:
        rank = Rank(*bounds)
        decided = _decided(rank, margin)
        if decided is not None:
            return ReleaseVerdict(
                verdict=decided, reason=None, rank=rank, used=sessions, next_look=None
            )
    used, rank = (looks[-1].sessions, Rank(*looks[-1][1:])) if looks else (0, None)
    reason: Reason = "too_few_candidate" if len(candidate) < LOOKS[0] else "undecided"
    if left_out > len(candidate):
        reason = "low_coverage"
    elif len(baseline) < MIN_BASELINE:
        reason = "too_few_baseline"
    return ReleaseVerdict(
        verdict="inconclusive",
        reason=reason,
        rank=rank,
        used=used,
        next_look=next((look for look in LOOKS if look > max(used, len(candidate))), None),
    )


def rank_of(
    candidate: Sequence[float],
    baseline: Sequence[float],
    *,
    z: float = Z,
    clumped: bool = False,
) -> Rank:
    """The rank of a candidate's scores; neither side is empty. `z`: errors up to each bound.

    `clumped`: the scores of both came in this order, and may be bad in clumps.
    """
    mine, theirs = sorted(candidate), sorted(baseline)
    above = [_share_below(each, theirs) for each in candidate]
    below = [1 - _share_below(each, mine) for each in baseline]
    value = fmean(above)
    one, other = _variance(above) / len(above), _variance(below) / len(below)
    if clumped and one + other:
        usual = _clumping(below)
        now = max(usual, _clumping(above))
        one, other = one * now, other * usual
        sizes = max(2.0, len(above) / now), max(2.0, len(below) / usual)
        independent = (one + other) ** 2 / (one**2 / (sizes[0] - 1) + other**2 / (sizes[1] - 1))
        z = _of_student(z, independent)
    error = math.sqrt(one + other)
    return Rank(value, max(0.0, value - z * error), min(1.0, value + z * error))


def _of_student(z: float, freedom: float) -> float:
    """The quantile of Student's t in place of the normal one (Abramowitz and Stegun 26.7.5)."""
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    return z + (z**3 + z) / (4 * freedom) + second


def _decided(rank: Rank, margin: float) -> Decision | None:
    if rank.upper < 0.5:
        return "fail"
    return "pass" if rank.lower > 0.5 - margin else None


def _share_below(value: float, ordered: Sequence[float]) -> float:
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def _clumping(values: Sequence[float]) -> float:
    """How many times larger the variance of their mean is than if each were independent of the one before it."""
    center = fmean(values)
    apart = [each - center for each in values]
    square = math.fsum(each * each for each in apart)
    if not square:
        return 1.0
    # The estimate is low by (1 + 3 first) / n (Marriott and Pope, Biometrika 41, 1954). Above .8 it is a change.
    found = math.fsum(a * b for a, b in pairwise(apart)) / square + 1 / len(values)
    first = min(0.8, max(0.0, found / (1 - 3 / len(values))))
    return (1 + first) / (1 - first)


def _variance(values: Sequence[float]) -> float:
    center = fmean(values)
    return sum((each - center) ** 2 for each in values) / max(1, len(values) - 1)
