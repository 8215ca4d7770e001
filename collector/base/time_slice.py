"""Work in slices: between two pieces of a long one, the other tasks of the event loop run."""

import asyncio
import sys
import time
from collections.abc import Generator
from typing import TypeVar

_T = TypeVar("_T")
SLICE = 0.002
"""Seconds of work after which other tasks run: senders wait for their acknowledgements. Each change of tasks asks for
news and gives the interpreter away, which other threads then fight for: 0.5 ms took a fifth more CPU a span."""
TURN = SLICE / 2.5
"""Seconds after which a thread that waits for the interpreter gets it; less than a slice, see `take_turns`."""


def take_turns() -> None:
    """Let other threads of this process have the interpreter soon while the event loop is busy.

    Between two slices the loop gives the interpreter away for a microsecond, in which no other thread wakes up, and
    with which its wait begins again. With Python's 5 ms a thread that waits could wait forever (docs/decisions/039).
    """
    sys.setswitchinterval(TURN)


class TimeSlice:
    """One task's slice. Not by the loop's own clock: that of uvloop stands still for as long as one task runs."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    async def give_way(self) -> None:
        """To be awaited between two pieces of work: lets other tasks run if the slice is used up."""
        if time.perf_counter() - self._began < SLICE:
            return
        await asyncio.sleep(0)
        self._began = time.perf_counter()


async def in_steps(steps: Generator[None, None, _T]) -> _T:
    """What the steps come to; between two of them other tasks run."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)
