"""Comparing nested answers with a tolerance on numbers only."""

from __future__ import annotations

from typing import Any

import pytest


def close(actual: Any, expected: Any, *, tolerance: float, relative: float = 0.0) -> None:
    """Assert equal structure; numbers within the tolerance, everything else exactly."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict)
        assert set(actual) == set(expected)
        for key, value in expected.items():
            close(actual[key], value, tolerance=tolerance, relative=relative)
    elif isinstance(expected, list):
        assert isinstance(actual, list | tuple)
        assert len(actual) == len(expected)
        for mine, theirs in zip(actual, expected, strict=True):
            close(mine, theirs, tolerance=tolerance, relative=relative)
    elif isinstance(expected, bool) or not isinstance(expected, int | float):
        assert actual == expected
    else:
        assert not isinstance(actual, bool)
        assert actual == pytest.approx(expected, abs=tolerance, rel=relative)
