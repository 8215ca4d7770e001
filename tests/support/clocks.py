"""Clocks that tests set, and waiting."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from collector.base.steady_clock import SteadyClock


class SetClock:
    """Stands still until it is set."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Machine:
    """`wall` may be set; `elapsed` only goes on."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._wall = now
        self._elapsed = 5_000.0

    def wall(self) -> float:
        """What its clock says."""
        return self._wall

    def elapsed(self) -> float:
        """Seconds since it was started."""
        return self._elapsed

    def clock(self) -> SteadyClock:
        """That of a process which is started now."""
        return SteadyClock(wall=self.wall, elapsed=self.elapsed)

    def go_on(self, seconds: float) -> None:
        """So much time goes by."""
        self._wall += seconds
        self._elapsed += seconds

    def set_clock(self, by: float) -> None:
        """Its clock is set forwards or back."""
        self._wall += by


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


async def eventually(claim: Callable[[], bool], *, within: float = 60.0) -> None:
    """Return when the claim is true."""
    async with asyncio.timeout(within):
        while not claim():  # noqa: ASYNC110 - the claim is about many things, none of which has an event
            await asyncio.sleep(0.002)
