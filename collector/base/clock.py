"""Time as an argument: code that needs it takes a `Clock`, so that tests can set it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], float]
"""Unix seconds. The machine's may be set; log time goes on whatever is done to that (`steady_clock`)."""


def wall() -> float:
    """The machine's clock, which may be set forwards or back: the only place that reads it."""
    return time.time()  # noqa: TID251 - the one place
