"""Comparing nested answers with a tolerance on numbers only."""

from typing import Any, cast


def close(actual: Any, expected: Any, *, tolerance: float, relative: float = 0.0) -> None:
    """Assert equal structure; numbers within the tolerance, everything else exactly."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict)
        mapping, wanted = cast("dict[str, Any]", actual), cast("dict[str, Any]", expected)
        assert set(mapping) == set(wanted)
        for key, value in wanted.items():
            close(mapping[key], value, tolerance=tolerance, relative=relative)
    elif isinstance(expected, list):
        assert isinstance(actual, list | tuple)
        both = zip(cast("list[Any]", actual), cast("list[Any]", expected), strict=True)
        for mine, theirs in both:
            close(mine, theirs, tolerance=tolerance, relative=relative)
    elif isinstance(expected, bool) or not isinstance(expected, int | float):
        assert actual == expected
    else:
        assert not isinstance(actual, bool)
        # As pytest.approx says it, which takes a third of the time of all vectors.
        assert actual == expected or abs(actual - expected) <= max(
            tolerance, relative * abs(expected)
        )
