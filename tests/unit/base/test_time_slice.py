import asyncio
import sys
import threading
import time
import zlib
from collections.abc import Callable

import pytest
import uvloop

from collector.base import time_slice
from collector.base.time_slice import SLICE, TimeSlice, take_turns

PARTS = 66
"""The pages of a request of 64 spans: the writer of the log gives the interpreter away for each."""
MOST = 4000


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_others_run_once_the_slice_is_used_up_and_not_before(
    monkeypatch: pytest.MonkeyPatch, run: type
) -> None:
    """On uvloop too, whose own clock stands still meanwhile."""
    now = 0.0
    monkeypatch.setattr(time_slice.time, "perf_counter", lambda: now)
    turns: list[float] = []

    async def work() -> None:
        nonlocal now
        slice_ = TimeSlice()
        others = asyncio.create_task(count())
        for _ in range(20):
            now += SLICE * 0.3
            await slice_.give_way()
        others.cancel()

    async def count() -> None:
        while True:
            turns.append(now)
            await asyncio.sleep(0)

    run(work())

    assert len(turns) == 5  # after every fourth piece


def test_a_thread_has_its_turns_beside_a_loop_that_is_always_busy() -> None:
    """With Python's 5 ms it has none on two cores that do nothing else: it takes 65 slices here.

    Where others use the cores, the loop has to pause too, and the thread has its turns with any interval.
    """
    interval = sys.getswitchinterval()
    take_turns()
    try:
        assert uvloop.run(_slices_beside(_work_in_parts)) < MOST
    finally:
        sys.setswitchinterval(interval)


def _work_in_parts() -> None:
    part = bytes(500_000)
    for _ in range(PARTS):
        zlib.crc32(part)


async def _slices_beside(work: Callable[[], None]) -> int:
    """Slices of the loop's own work until the thread is done, MOST at most."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    for count in range(MOST):
        if not thread.is_alive():
            return count
        end = time.perf_counter() + SLICE
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)
    return MOST
