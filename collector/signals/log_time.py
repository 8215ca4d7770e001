"""The log time that every partition of a topic has passed. Pure."""

from __future__ import annotations

from collections.abc import Mapping

HOLD = 120.0
"""Seconds by which log time may lag behind for a partition that was lost: another process may keep it."""


class LogTime:
    """How far the partitions of one reader have come."""

    def __init__(self) -> None:
        self._reached: dict[int, float] = {}
        self._owned: set[int] = set()

    def own(self, partition: int) -> None:
        """The partition's records come from now on: log time waits for it."""
        self._reached.setdefault(partition, 0.0)
        self._owned.add(partition)

    def lose(self, partition: int) -> None:
        """The partition's records do not come for now: log time waits for its return, for at most HOLD seconds."""
        self._owned.discard(partition)

    def reach(self, reached: Mapping[int, float]) -> None:
        """These partitions have no more records from before these log times."""
        for partition, time in reached.items():
            self._reached[partition] = max(time, self._reached.get(partition, 0.0))

    def begin_again(self) -> None:
        """Every partition is read again from its commit."""
        self._reached = dict.fromkeys(self._reached, 0.0)

    @property
    def passed(self) -> float:
        """What every partition has reached."""
        least = min((self._reached[each] for each in self._owned), default=0.0)
        return min((max(each, least - HOLD) for each in self._reached.values()), default=0.0)
