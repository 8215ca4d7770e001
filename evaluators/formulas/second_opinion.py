"""Does a judge see the loss that other scores have raised? Its scores since are ranked among those before. Pure.

The looks are those of a release. Two hypotheses are ruled out, each with its own error:

    nothing has changed   -> confirmed:      rank < .5 by more than `CONFIRMS` errors of two samples that are alike
    a loss of `MARGIN`    -> not confirmed:  rank - Z errors > .5 - MARGIN, as a release passes
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Literal

from evaluators.formulas.release_verdict import MARGIN, Look, looks_of

Verdict = Literal["confirmed", "not_confirmed", "undecided"]

FALSELY = {20: 0.0005, 40: 0.009, 80: 0.002, 160: 0.005}
"""By look, the share of drops without a loss that it may confirm: a page wakes somebody, so at most 2 % in all.

Half of it goes to the look at 40 sessions, within which a large loss is to be confirmed. What is left to 2 % is for a
judge that fails few sessions: the errors are those of the normal distribution (docs/evidence.md).
"""
CONFIRMS = {look: NormalDist().inv_cdf(1 - share) for look, share in FALSELY.items()}


def opinion_looks(
    since: Sequence[float], before: Sequence[float], *, taken: Sequence[Look] = ()
) -> tuple[Look, ...]:
    """The looks that were taken and those that are due; below `MIN_BASELINE` scores before there is none.

    `since` and `before`: the judge's scores in [0, 1], in the order of their sessions. `upper` of a look is the bound
    that confirms.
    """
    looks = looks_of(since, before, taken=taken)
    return (*taken, *(_confirming(each, since, before) for each in looks[len(taken) :]))


def _confirming(look: Look, since: Sequence[float], before: Sequence[float]) -> Look:
    error = error_if_alike(since[: look.sessions], before)
    return look._replace(upper=min(1.0, look.rank + CONFIRMS[look.sessions] * error))


def error_if_alike(one: Sequence[float], other: Sequence[float]) -> float:
    """The standard error of the rank of two samples of one distribution, with ties (Lehmann, Nonparametrics, 1.4)."""
    count = len(one) + len(other)
    ties = sum(each**3 - each for each in Counter([*one, *other]).values())
    return math.sqrt((count + 1 - ties / (count * (count - 1))) / (12 * len(one) * len(other)))


def verdict_of(looks: Iterable[Look]) -> Verdict:
    """The verdict of the first look that decides."""
    for each in looks:
        if each.upper < 0.5:
            return "confirmed"
        if each.lower > 0.5 - MARGIN:
            return "not_confirmed"
    return "undecided"
