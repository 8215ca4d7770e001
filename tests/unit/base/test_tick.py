"""Who waits for a tick wakes up with all others that do, and at once when its event is set."""

import asyncio
from types import SimpleNamespace

import pytest

from collector.base import clock
from collector.base.clock import next_tick, until_tick


@pytest.mark.parametrize("now", [10.0, 10.25, 10.999])
def test_waits_that_begin_apart_end_together(monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    loop = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr(clock.asyncio, "get_running_loop", lambda: loop)

    assert now + until_tick(1.0) == pytest.approx(11.0)
    assert now + until_tick(0.5) == pytest.approx(10.5 if now < 10.5 else 11.0)


async def test_an_event_ends_the_wait() -> None:
    ending = asyncio.Event()
    ending.set()

    await asyncio.wait_for(next_tick(3600, ending), 5)
