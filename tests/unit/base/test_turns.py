"""When a process gives way to others: ticks, time slices, and memory that is given back after load."""

import asyncio
import ctypes
import sys
import threading
import time
import zlib
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import uvloop

from collector.base import clock, heap, time_slice
from collector.base.clock import next_tick, until_tick
from collector.base.heap import LONGEST, QUIET, WORTH_IT, TrimTimer, trimmed_heap
from collector.base.time_slice import SLICE, TimeSlice, take_turns
from tests.support.table import for_each


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


def times_due(*, busy: int, quiet: int) -> list[int]:
    """The seconds at which memory is given back: `busy` ones with half of a CPU used, then quiet ones."""
    timer, used, due = TrimTimer(0.0, 0.0), 0.0, list[int]()
    for second in range(1, busy + quiet + 1):
        used += 0.5 if second <= busy else 0.01
        if timer.is_due(float(second), used):
            due.append(second)
    return due


@for_each(
    ("busy", "quiet", "due"),
    [
        (10, 40, [10 + QUIET]),  # once when load has gone
        (150, 20, [LONGEST, 2 * LONGEST, 150 + QUIET]),  # now and then while it lasts
        (0, int(WORTH_IT / 0.01) - 1, []),  # a process that does nothing
    ],
)
def test_memory_is_given_back_after_load_and_while_it_lasts(
    busy: int, quiet: int, due: list[float]
) -> None:
    assert times_due(busy=busy, quiet=quiet) == due


class Always(TrimTimer):
    """Always due."""

    def is_due(self, now: float, used: float) -> bool:
        return True


def test_the_thread_gives_back_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    given = threading.Event()
    library = SimpleNamespace(malloc_trim=lambda _: given.set())  # pyright: ignore[reportUnknownLambdaType]
    monkeypatch.setattr(heap, "_EVERY", 0.001)
    monkeypatch.setattr(heap, "TrimTimer", Always)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    with trimmed_heap():
        assert given.wait(10)
        assert "heap" in {each.name for each in threading.enumerate()}

    assert "heap" not in {each.name for each in threading.enumerate()}


def test_without_glibc_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda: None)  # which takes no name: a TypeError

    with trimmed_heap():
        assert "heap" not in {each.name for each in threading.enumerate()}
