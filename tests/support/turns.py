"""Tests that need the machine for themselves wait for those that run, and the others wait for them.

`make test-all` runs in several processes. A ratio measured beside another test would say what that test took; so each
test takes a turn: shared with the others, or alone (marker `bench`). In one process nothing waits.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / ".cache" / "tests"


@contextmanager
def exclusive(name: str) -> Generator[None]:
    """No other process is in a block of that name, whatever it needs to be alone for."""
    with ExitStack() as held:
        _take(held, name, fcntl.LOCK_EX)
        yield


@contextmanager
def turn(*, alone: bool) -> Generator[None]:
    """A test's time to run; `alone`: no other test of this checkout runs meanwhile."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with ExitStack() as held:
        # Who waits to be alone keeps the door, so that new tests cannot overtake it for ever.
        with exclusive("door"):
            _take(held, "hall", fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def _take(held: ExitStack, name: str, kind: int) -> None:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    file = held.enter_context((_FOLDER / name).open("w"))
    fcntl.flock(file, kind)
