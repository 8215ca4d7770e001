"""For a process with this folder in PYTHONPATH: its wall clock is off by the seconds in the file CLOCK_OFF names."""

import os
import time
from pathlib import Path

_time, _time_ns = time.time, time.time_ns  # noqa: TID251 - what it shifts


def _off() -> float:
    try:
        return float(Path(os.environ["CLOCK_OFF"]).read_text() or 0)
    except (OSError, KeyError, ValueError):
        return 0.0


time.time = lambda: _time() + _off()  # noqa: TID251
time.time_ns = lambda: _time_ns() + int(_off() * 1e9)
