from __future__ import annotations

import asyncio

import pytest
import uvloop

from collector.runtime import time_slice
from collector.runtime.time_slice import SLICE, TimeSlice


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
