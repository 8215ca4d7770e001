"""Which costly tests are due: those of a group whose files have changed since they last passed.

`make test-all` runs a group when the digest of what it guards differs from the one in `tests/data/soaked.json`. `make
groups`, which `make soak` begins with, runs those that are due and writes the digest of each that passed. So no change
of a guarded file stays untested, whatever a clone is compared with. Run by hand, every test runs.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.groups import GROUPS, ROOT

RECORD = Path("tests/data/soaked.json")
ONLY_DUE = "SPANWISE_TEST_ONLY_DUE"
"""Set to 1 by `make test-all`."""


def changed(root: Path = ROOT) -> list[str]:
    """The groups that are due: something that they guard is not as it was when they passed."""
    passed = json.loads((root / RECORD).read_text())
    return [name for name, each in GROUPS.items() if passed.get(name) != each.digest(root)]


def not_due() -> list[str]:
    """The groups whose tests are left out of this run."""
    if os.environ.get(ONLY_DUE) != "1":
        return []
    due = changed()
    return [name for name in GROUPS if name not in due]


def header() -> list[str]:
    """The line that says what is left out."""
    left_out = ", ".join(not_due())
    return (
        [f"not due, unchanged since they passed (tests/support/guarded.py): {left_out}"]
        if left_out
        else []
    )


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not due."""
    names = not_due()
    out = [each for each in items if any(GROUPS[name].has(each.nodeid) for name in names)]
    if out:
        config.hook.pytest_deselected(items=out)
        gone = set(out)
        items[:] = [each for each in items if each not in gone]


class Reports:
    """Says that a group has passed once all of its tests have ended, at least one has passed, and no other result came.

    At once, so that a run that is interrupted keeps what it has found.
    """

    def __init__(self, names: Sequence[str], passed: Callable[[str], None]) -> None:
        self._names = names
        self._say = passed
        self._left: dict[str, set[str]] = {}
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        if not self._left:  # each process has the same
            self._left = {name: {i for i in ids if GROUPS[name].has(i)} for name in self._names}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, left in self._left.items():
            if GROUPS[name].has(report.nodeid):
                if not report.passed:
                    self._failed.add(name)
                elif report.when == "call":
                    self._passed.add(name)
                elif report.when == "teardown":
                    left.discard(report.nodeid)
                    if not left and name in self._passed - self._failed:
                        self._say(name)


def main(root: Path = ROOT) -> int:
    """Run all that are due in one go, and record each group that passes with nothing skipped; the exit code."""
    digests = {name: GROUPS[name].digest(root) for name in changed(root)}
    if not digests:
        return 0
    reports = Reports(list(digests), lambda name: record(name, digests[name], root))
    tests = [test for name in digests for test in GROUPS[name].tests]
    options = ["-n", "4", "--dist", "loadfile", "--no-loadscope-reorder", "-m", "not slow"]
    return int(pytest.main([*options, *tests], plugins=[reports]))


def record(name: str, digest: str, root: Path = ROOT) -> None:
    """Write that a group has passed with the files of this digest."""
    passed = json.loads((root / RECORD).read_text()) | {name: digest}
    (root / RECORD).write_text(json.dumps(passed, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
