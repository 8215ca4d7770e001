"""The port from the room to whoever judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from collector.judging.frames import Done, Job


class Judges(Protocol):
    """Whoever judges (collector/judging/process.py; tests bring their own)."""

    async def judge(self, make: Callable[[int], Job]) -> Done:
        """The verdict of a job, which is made with a number of the judge's own.

        Raises:
            JudgeDiedError: there will be none, whoever asks.
            JudgeLateError: there will be none in time.
        """
        ...

    def written(self, done: Done) -> None:
        """The verdict is in the log."""
        ...

    async def run(self) -> None:
        """Stand by until cancelled."""
        ...
