"""Which command runs a test: `make test`, `make test-all` or `make soak`, and what a test of the first may not do.

`make test` is what the lock file alone can run. Its tests start no process, so they need no tool; and they are never
skipped, so nothing is missed for want of one. A test that starts a process says so with one of the marks below.
"""

import platform
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
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
