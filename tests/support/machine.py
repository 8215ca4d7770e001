"""A machine whose clock is set while time goes on."""

from collector.base.steady_clock import SteadyClock


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
