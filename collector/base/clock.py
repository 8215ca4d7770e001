"""Time as an argument: code that needs it takes a `Clock`, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]
"""Unix seconds. May jump; the log makes log time of it, which never goes back."""


def wall() -> float:
    """The machine's clock: the only place that reads it."""
    return time.time()  # noqa: TID251 - the one place
