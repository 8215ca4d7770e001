"""Scores stay in [0, 1]."""

from __future__ import annotations


def clamp(value: float) -> float:
    """The nearest number in [0, 1]; NaN stays NaN, so that it is caught as invalid."""
    return value if value != value else min(1.0, max(0.0, value))  # noqa: PLR0124


def rounded(value: float) -> float:
    """To four decimals, as scores and their parts are published; never a negative zero."""
    return round(value, 4) + 0.0
