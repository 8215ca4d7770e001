"""How many examples a property is tried with: a sixth in `make test`, all of them in `make soak`."""

import os

IS_LONG = os.environ.get("SPANWISE_ALL_EXAMPLES") == "1"
"""Whether this is the long form."""
USUAL = 100
"""Hypothesis' own number, of a property that names none."""


def examples(of: int) -> int:
    """The number of examples for now."""
    return of if IS_LONG else max(1, of // 6)
