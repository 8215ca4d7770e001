"""Which costly tests are due: those of a group whose files have changed since they last passed.

`make test-all` runs a group when the digest of what it guards differs from the one in `tests/data/soaked.json`. `make
groups`, which `make soak` begins with, runs those that are due and writes the digest of each that passed. So no change
of a guarded file stays untested, whatever a clone is compared with. Run by hand, every test runs.
`tests/data/groups.toml` has the groups.
"""

import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = Path("tests/data/soaked.json")
ONLY_DUE = "SPANWISE_TEST_ONLY_DUE"
"""Set to 1 by `make test-all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Tests, as files or `file::name`, and what they alone guard, as patterns below the root."""

    tests: Sequence[str]
    guards: Sequence[str]

    def has(self, test: str) -> bool:
        """Whether a test of this id is one of the group's."""
        file, _, name = test.partition("::")
        names = (file, f"{file}::{name.partition('[')[0]}")
        return any(each in names for each in self.tests)

    def digest(self, root: Path = ROOT) -> str:
        """Of the names and contents of all guarded files."""
        found = hashlib.sha256()
        for file in sorted(file for each in self.patterns for file in matching(each, root)):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            found.update(f"{file.relative_to(root)} {content}\n".encode())
        return found.hexdigest()

    @property
    def patterns(self) -> set[str]:
        return {*self.guards, *(each.partition("::")[0] for each in self.tests)}


def matching(pattern: str, root: Path = ROOT) -> list[Path]:
    """The source files of a pattern."""
    found = root.glob(pattern)
    return [each for each in found if each.is_file() and "__pycache__" not in each.parts]


def read_groups(root: Path = ROOT) -> dict[str, Group]:
    """By name. A pattern among the tests is all of its files."""
    found: dict[str, Group] = {}
    for name, each in tomllib.loads((root / "tests/data/groups.toml").read_text()).items():
        tests: list[str] = []
        for test in each["tests"]:
            files = sorted(root.glob(test)) if "*" in test else [root / test]
            tests += [str(file.relative_to(root)) for file in files]
        found[name] = Group(tests=tests, guards=each["guards"])
    return found


GROUPS: Mapping[str, Group] = read_groups()


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
