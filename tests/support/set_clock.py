"""A service whose machine's clock is set, before its start and while it runs."""

import time
from pathlib import Path

SHIFTED = Path(__file__).parent / "shifted_clock"
DAY = 86_400.0
HOUR = 3_600.0


def clock_file(off: Path, ahead: float) -> dict[str, str]:
    """The environment of a process whose clock is ahead by the seconds in the file `off`, `ahead` at first."""
    off.write_text(str(ahead))
    return {"PYTHONPATH": str(SHIFTED), "CLOCK_OFF": str(off)}


def ahead_at(hour: float) -> float:
    """By how many seconds a clock is ahead that shows this hour of the UTC day now."""
    return hour * HOUR - time.time() % DAY  # noqa: TID251 - the machine's clock is what is set
