"""May a release go on? The rank of its sessions' scores among those of the version before. Pure.

Rank: the chance that a session of the candidate scores better than one of the baseline, ties half; .5 is as good. Its
standard error is that of DeLong, DeLong and Clarke-Pearson (Biometrics 44, 1988) for two independent samples.

There are four looks, at 20, 40, 80 and 160 sessions of the candidate, each one-sided at .05 / 4. Between looks the
verdict does not change, and a fail or a pass stays: whoever asks every ten seconds gains no false alarm.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Literal, NamedTuple, TypeAlias

LOOKS = (20, 40, 80, 160)
"""Sessions of the candidate at which is decided."""
MIN_BASELINE = 20
MARGIN = 0.1
"""How far below .5 the rank may lie for the release to pass."""
Z = NormalDist().inv_cdf(1 - 0.05 / len(LOOKS))
Decision: TypeAlias = Literal["pass", "fail", "inconclusive"]
Reason: TypeAlias = Literal["too_few_candidate", "too_few_baseline", "undecided", "low_coverage"]


class Rank(NamedTuple):
    """With one-sided bounds, each at .05 / 4."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseVerdict:
    """What the looks so far decided."""

    verdict: Decision
    reason: Reason | None
    """Why it is inconclusive."""
    rank: Rank | None
    """At the look that decided, else at the last one; None: there was none."""
    used: int
    """Sessions of the candidate at that look."""
    next_look: int | None
    """Sessions at the next one; None: nothing more is decided."""


def release_verdict(
    candidate: Sequence[float],
    baseline: Sequence[float],
    *,
    margin: float = MARGIN,
    left_out: int = 0,
) -> ReleaseVerdict:
    """The verdict over a candidate's scores, in the order in which its sessions came.

    Args:
        candidate: Scores in [0, 1].
        baseline: Those of the version before, in any order.
        margin: Above 0, at most .5.
        left_out: Sessions of the candidate of which too little is seen for a score. Where these are more than half,
            the verdict is inconclusive: blind never passes.
    """
    if left_out > len(candidate):
        return _inconclusive("low_coverage", len(candidate))
    if len(baseline) < MIN_BASELINE:
        return _inconclusive("too_few_baseline", len(candidate))
    ordered, found = sorted(baseline), None
    for look in LOOKS:
        if len(candidate) < look:
            break
        found = rank_of(candidate[:look], ordered)
        decided = _decided(found, margin)
        if decided is not None:
            return ReleaseVerdict(
                verdict=decided, reason=None, rank=found, used=look, next_look=None
            )
    reached = [look for look in LOOKS if look <= len(candidate)]
    return ReleaseVerdict(
        verdict="inconclusive",
        reason="undecided" if reached else "too_few_candidate",
        rank=found,
        used=max(reached, default=0),
        next_look=_next(len(candidate)),
    )


def rank_of(candidate: Sequence[float], baseline: Sequence[float]) -> Rank:
    """The rank of a candidate's scores; `baseline` is sorted, neither is empty."""
    ordered = sorted(candidate)
    above = [_share_below(each, baseline) for each in candidate]
    below = [1 - _share_below(each, ordered) for each in baseline]
    value = fmean(above)
    error = math.sqrt(_variance(above) / len(above) + _variance(below) / len(below))
    return Rank(value, max(0.0, value - Z * error), min(1.0, value + Z * error))


def _decided(rank: Rank, margin: float) -> Decision | None:
    if rank.upper < 0.5:
        return "fail"
    return "pass" if rank.lower > 0.5 - margin else None


def _share_below(value: float, ordered: Sequence[float]) -> float:
    """Of sorted scores, those below the value; equal ones count half."""
    return (bisect_left(ordered, value) + bisect_right(ordered, value)) / (2 * len(ordered))


def _variance(values: Sequence[float]) -> float:
    center = fmean(values)
    return sum((each - center) ** 2 for each in values) / max(1, len(values) - 1)


def _inconclusive(reason: Reason, samples: int) -> ReleaseVerdict:
    return ReleaseVerdict(
        verdict="inconclusive", reason=reason, rank=None, used=0, next_look=_next(samples)
    )


def _next(samples: int) -> int | None:
    return next((look for look in LOOKS if look > samples), None)
