"""Scores in [0, 1], their distributions (Cogitator's aggregates; empty gives zeros), and bounds on their mean."""

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple


def clamp(value: float) -> float:
    """The nearest number in [0, 1]; NaN stays NaN, so that it is caught as invalid."""
    return value if value != value else min(1.0, max(0.0, value))  # noqa: PLR0124


def rounded(value: float) -> float:
    """To four decimals, as scores and their parts are published; never a negative zero."""
    return round(value, 4) + 0.0


def percentile(values: Iterable[float], p: float) -> float:
    """Linear interpolation between neighbours at rank p (n - 1), p in [0, 1]."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    rank = p * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (n - 1); 0 below two values."""
    if len(values) < 2:
        return 0.0
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def aggregate(values: Sequence[float]) -> dict[str, float]:
    return {
        "mean": mean(values),
        "median": percentile(values, 0.5),
        "p50": percentile(values, 0.5),
        "p95": percentile(values, 0.95),
        "p99": percentile(values, 0.99),
        "min": min(values, default=0.0),
        "max": max(values, default=0.0),
        "stdDev": deviation(values),
    }


def latency(durations: Sequence[float]) -> dict[str, float]:
    whole = aggregate(durations)
    return {key: whole[key] for key in ("p50", "p95", "p99", "mean", "median", "min", "max")}


def cost(costs: Sequence[float]) -> dict[str, float]:
    whole = aggregate(costs)
    return {
        "total": math.fsum(costs),
        **{key: whole[key] for key in ("mean", "median", "min", "max")},
    }


def token_usage(usage: Sequence[tuple[int, int]]) -> dict[str, float]:
    total_in, total_out = sum(used for used, _ in usage), sum(used for _, used in usage)
    count = len(usage) or 1
    return {
        "totalInput": total_in,
        "totalOutput": total_out,
        "totalTokens": total_in + total_out,
        "meanInput": total_in / count,
        "meanOutput": total_out / count,
    }


CONFIDENCE = 0.95  # of bounds, where nothing else is said


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


def weighted_bounds(scores: Iterable[tuple[float, float]]) -> ConfidenceInterval | None:
    """`bounds` of (score, weight), weights above 0: a score counts as often as its weight says.

    Where weights differ, as many scores are behind the mean as Kish (1965) says: (sum of w)^2 / sum of w^2.
    """
    ordered = sorted(scores)
    values = [score for score, _ in ordered]
    weights = [weight for _, weight in ordered]
    if not ordered or min(weights) == max(weights):
        return bounds(values)
    total = math.fsum(weights)
    mean = math.fsum(score * weight for score, weight in ordered) / total
    count = total**2 / math.fsum(weight**2 for weight in weights)
    square = math.fsum(weight * (score - mean) ** 2 for score, weight in ordered) / total
    return _bernstein(mean, square * count / (count - 1), count, CONFIDENCE)


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
    return _bernstein(mean, variance, count, confidence)


def _bernstein(mean: float, variance: float, count: float, confidence: float) -> ConfidenceInterval:
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
