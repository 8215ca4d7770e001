"""95 % bounds on the mean of a window's scores. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95


class ConfidenceInterval(NamedTuple):
    """A mean and the two-sided bounds on it, all in [0, 1]."""

    mean: float
    lower: float
    upper: float


def bounds(scores: Sequence[float], confidence: float = CONFIDENCE) -> ConfidenceInterval | None:
    """Wilson where every score is 0 or 1 (a pass/fail series), else empirical Bernstein. None without scores."""
    if not scores:
        return None
    if all(score in (0.0, 1.0) for score in scores):
        return wilson(round(sum(scores)), len(scores), confidence)
    return empirical_bernstein(scores, confidence)


def empirical_bernstein(
    scores: Sequence[float], confidence: float = CONFIDENCE
) -> ConfidenceInterval:
    """Maurer and Pontil (2009), theorem 4, on both sides: holds for any distribution on [0, 1].

    mean +- sqrt(2 V ln(4/d) / n) + 7 ln(4/d) / (3 (n - 1)),   V the sample variance, d = 1 - confidence
    """
    count = len(scores)
    mean = math.fsum(scores) / count
    if count < 2:
        return ConfidenceInterval(mean, 0.0, 1.0)
    variance = math.fsum((score - mean) ** 2 for score in scores) / (count - 1)
    log = math.log(4 / (1 - confidence))
    radius = math.sqrt(2 * variance * log / count) + 7 * log / (3 * (count - 1))
    return ConfidenceInterval(mean, max(0.0, mean - radius), min(1.0, mean + radius))


def wilson(passed: int, count: int, confidence: float = CONFIDENCE) -> ConfidenceInterval:
    """The Wilson (1927) score interval of a proportion."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    mean = passed / count
    centre = (mean + z * z / (2 * count)) / (1 + z * z / count)
    radius = z / (1 + z * z / count) * math.sqrt(mean * (1 - mean) / count + (z / (2 * count)) ** 2)
    # At 0 and 1 the interval ends there exactly; rounding must not put the mean outside.
    return ConfidenceInterval(
        mean, max(0.0, min(mean, centre - radius)), min(1.0, max(mean, centre + radius))
    )
