"""Distributions of a session or a run (Cogitator's aggregates and statistical metrics). Empty gives zeros."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


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
    """Arithmetic mean, summed exactly."""
    return math.fsum(values) / len(values) if values else 0.0


def deviation(values: Sequence[float]) -> float:
    """Sample standard deviation (n - 1); 0 below two values."""
    if len(values) < 2:
        return 0.0
    center = mean(values)
    return math.sqrt(math.fsum((value - center) ** 2 for value in values) / (len(values) - 1))


def aggregate(values: Sequence[float]) -> dict[str, float]:
    """Cogitator's aggregate of one evaluator over all cases."""
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
    """Of durations in milliseconds."""
    whole = aggregate(durations)
    return {key: whole[key] for key in ("p50", "p95", "p99", "mean", "median", "min", "max")}


def cost(costs: Sequence[float]) -> dict[str, float]:
    """Of costs in USD."""
    whole = aggregate(costs)
    return {
        "total": math.fsum(costs),
        **{key: whole[key] for key in ("mean", "median", "min", "max")},
    }


def token_usage(usage: Sequence[tuple[int, int]]) -> dict[str, float]:
    """Of (input, output) tokens."""
    total_in, total_out = sum(used for used, _ in usage), sum(used for _, used in usage)
    count = len(usage) or 1
    return {
        "totalInput": total_in,
        "totalOutput": total_out,
        "totalTokens": total_in + total_out,
        "meanInput": total_in / count,
        "meanOutput": total_out / count,
    }
