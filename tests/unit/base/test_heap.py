"""Memory is given back after load, and now and then while it lasts, but never to a process that does nothing."""

import ctypes
import threading
from types import SimpleNamespace

import pytest

from collector.base import heap
from collector.base.heap import LONGEST, QUIET, WORTH_IT, TrimTimer, trimmed_heap


def times_due(*, busy: int, quiet: int, share: float = 0.5) -> list[int]:
    """The seconds at which memory is given back: `busy` ones with this share of a CPU used, then quiet ones."""
    timer, used, due = TrimTimer(0.0, 0.0), 0.0, list[int]()
    for second in range(1, busy + quiet + 1):
        used += share if second <= busy else 0.01
        if timer.is_due(float(second), used):
            due.append(second)
    return due


def test_once_when_load_has_gone() -> None:
    assert times_due(busy=10, quiet=40) == [10 + QUIET]


def test_now_and_then_while_load_lasts() -> None:
    assert times_due(busy=150, quiet=20) == [LONGEST, 2 * LONGEST, 150 + QUIET]


def test_a_process_that_does_nothing_gives_nothing_back() -> None:
    assert times_due(busy=0, quiet=int(WORTH_IT / 0.01) - 1) == []


class Always(TrimTimer):
    """Always due."""

    def is_due(self, now: float, used: float) -> bool:
        return True


def running() -> bool:
    return "heap" in {each.name for each in threading.enumerate()}


def test_the_thread_gives_back_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    given = threading.Event()

    def trim(_: object) -> None:
        given.set()

    def library(_: object) -> SimpleNamespace:
        return SimpleNamespace(malloc_trim=trim)

    monkeypatch.setattr(heap, "_EVERY", 0.001)
    monkeypatch.setattr(heap, "TrimTimer", Always)
    monkeypatch.setattr(ctypes, "CDLL", library)

    with trimmed_heap():
        assert given.wait(10)
        assert running()

    assert not running()


def test_without_glibc_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda: None)  # which takes no name: a TypeError

    with trimmed_heap():
        assert not running()
