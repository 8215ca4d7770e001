"""Noticing that ranks fall: cumulative sums with a bound on false alarms, and when an alarm is over. Pure.

A rank is in (0, 1), uniform and independent of earlier ranks while nothing changes. Each of four sums ignores a fall of
the mean rank below its own slack, so that small falls are found and large ones are found fast:
S = max(0, S + 0.5 - rank - slack), alarm at S >= limit. Of the four together an alarm comes once in 576,000 uniform
ranks on average. A direction of its own is fed 1 - rank.
"""

from typing import NamedTuple

import msgspec

from evaluators.formulas.fault_watch import Cause
from evaluators.formulas.past_limits import PastLimits

MIDDLE = 0.5  # the mean rank of a score among equals


class Change(NamedTuple):
    """What an alarm says."""

    began: float  # log time of the score that raised it
    since: float  # when the change began: `seen` of the first score that moved the alarm's sum after it was 0
    sessions: int  # scores that were ranked since then
    mean_rank: float  # their mean rank; .5 means no change, below it worse, above it better


class Sum(msgspec.Struct, array_like=True):
    """One cumulative sum, and what was ranked since it was 0."""

    total: float = 0.0
    since: float = 0.0
    sessions: int = 0
    ranks: float = 0.0  # their sum
    has_moved: bool = (
        False  # whether any of them was worse than usual, not only ranked low among equals
    )

    def feed(self, rank: float, seen: float, slack: float, *, is_worse: bool = True) -> None:
        """Take in the next rank, of a session whose newest span was first seen at log time `seen`."""
        total = self.total + MIDDLE - rank - slack
        if total > 0:
            if not self.has_moved:
                self.since, self.sessions, self.ranks, self.has_moved = seen, 0, 0.0, is_worse
            self.total = total
            self.sessions += 1
            self.ranks += rank
        else:
            self.total, self.since, self.sessions, self.ranks = 0.0, 0.0, 0, 0.0
            self.has_moved = False


class Alarm(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An alarm that is not over; about 2 kB."""

    began: float
    since: float
    sessions: int
    ranks: float  # their sum since the change began, as they are fed
    involved: tuple[str, ...]  # versions that the change may come from; any other is new
    newest: list[float] = []  # ranks since the alarm, the newest at the end
    versions: dict[str, tuple[int, float]] = {}
    """By new version, its scores since the alarm and the sum of their ranks."""
    strong: float = 0.0  # the sum with the largest slack, which goes on while the alarm is active
    cause: Cause | None = None  # (fault, tool) of the fault that explains it


class Falls(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The search for a fall of the ranks that are fed."""

    sums: list[Sum] = []
    alarm: Alarm | None = None

    def feed(
        self, rank: float, seen: float, version: str, limits: PastLimits, *, is_worse: bool
    ) -> None:
        """Take in the next rank, of a session seen at log time `seen`; it may end the alarm."""
        if self.alarm is None:
            self.sums = self.sums or [Sum() for _ in limits.slacks]
            for each, slack in zip(self.sums, limits.slacks, strict=True):
                each.feed(rank, seen, slack, is_worse=is_worse)
        elif _is_over(self.alarm, rank, version, limits):
            self.clear()
        else:
            total = self.alarm.strong + MIDDLE - rank - limits.slacks[-1]
            self.alarm.strong = max(0.0, total)

    def raised(self, limits: PastLimits) -> Sum | None:
        if self.alarm is not None:
            return None
        shares = self._shares(limits)
        most = max(shares, default=0.0)
        return self.sums[shares.index(most)] if most >= 1 else None

    def progress(self, limits: PastLimits) -> float:
        """How near an alarm is: the largest share of a limit that its sum has reached, 0 to 1; 1 while alarmed."""
        if self.alarm is not None:
            return 1.0
        return min(1.0, max(self._shares(limits), default=0.0))

    def clear(self) -> None:
        """End the alarm, and begin to search again."""
        self.sums, self.alarm = [], None

    def _shares(self, limits: PastLimits) -> list[float]:
        return [each.total / most for each, most in zip(self.sums, limits.limits, strict=False)]


def _is_over(alarm: Alarm, rank: float, version: str, limits: PastLimits) -> bool:
    """Take in a rank after the alarm; whether the mean rank of the newest, or of a new version, is as before again."""
    alarm.sessions += 1
    alarm.ranks += rank
    alarm.newest.append(rank)
    del alarm.newest[: -limits.clears_after]
    count = len(alarm.newest)
    if count == limits.clears_after and sum(alarm.newest) > limits.clears_above * count:
        return True
    if version in alarm.involved:
        return False
    count, ranks = alarm.versions.get(version, (0, 0.0))
    if version not in alarm.versions and len(alarm.versions) >= limits.versions:
        del alarm.versions[next(iter(alarm.versions))]
    count, ranks = count + 1, ranks + rank
    alarm.versions[version] = (count, ranks)
    return count >= limits.version_clears_after and ranks > limits.clears_above * count
