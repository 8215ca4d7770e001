"""Which command runs a test, and when: `make test`, `make test-all` or `make soak`; and what a test may not do.

`make test` is what the lock file alone can run. Its tests start no process, so they need no tool; and they are never
skipped, so nothing is missed for want of one. A test that starts a process says so with one of the marks below.

`make test-all` runs in several processes. A ratio measured beside another test would say what that test took; so each
test takes a turn: shared with the others, or alone (marker `bench`). In one process nothing waits.
"""

import fcntl
import os
import platform
import re
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FOLDERS = frozenset({"unit", "property", "golden", "conformance"})
"""All tests that `make test` runs are below one of these, and the Makefile names them."""
MARKS = ("process", "heavy", "e2e", "kafka", "bench", "slow")
"""Marks that take a test out of `make test`."""
STARTS = frozenset(
    {
        "subprocess.Popen",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.exec",
        "os.system",
    }
)
"""Python's audit events of a process that is started."""

NOT_FAST = "not (fast or slow)"
"""The mark expression of `make test-all`."""
_MAY_START = re.compile(rf"pytest\.mark\.(?:{'|'.join(MARKS)})\b|kafka")
"""A file of these folders without any such word holds tests of `make test` alone."""

_running: list[pytest.Item] = []
"""The test of the first tier that runs now."""


def place(item: pytest.Item) -> None:
    """Mark it `kafka` if it uses a broker, and `fast` if `make test` runs it."""
    if any(each.startswith("kafka") for each in getattr(item, "fixturenames", ())):
        item.add_marker("kafka")
    if item.path.relative_to(TESTS).parts[0] not in FOLDERS:
        return
    if not any(map(item.get_closest_marker, MARKS)):
        item.add_marker("fast")
    elif not may_start(item.path):
        raise pytest.UsageError(f"{item.nodeid}: no word of its file says that it is not `fast`")


def is_left_out(path: Path, marks: str) -> bool:
    """Whether `make test-all` need not collect a file: seven in eight, and each of its four processes would."""
    return marks == NOT_FAST and path.name.startswith("test_") and not may_start(path)


@cache
def may_start(path: Path) -> bool:
    """Whether a file can have a test that `make test` leaves out."""
    return path.relative_to(TESTS).parts[0] not in FOLDERS or bool(
        _MAY_START.search(path.read_text())
    )


def is_fast(item: pytest.Item) -> bool:
    return item.get_closest_marker("fast") is not None


@contextmanager
def watched(item: pytest.Item) -> Generator[None]:
    """A process that is started meanwhile fails the test, if it is one of `make test`."""
    if is_fast(item):
        _running.append(item)
    try:
        yield
    finally:
        _running.clear()


def refuse_processes() -> None:
    """Audit hooks cannot be removed: this one lasts as long as the interpreter."""
    platform.processor()  # OpenAI's client asks for it, by a process whose answer Python keeps
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in STARTS and _running:
        pytest.fail(f"{event} {arguments[:2]}: a test that starts a process is marked `process`")


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
