"""Which tests run when: costly groups when a file that they guard changes, processes only where a test is marked."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.support import guarded
from tests.support.guarded import GROUPS, ONLY_DUE, RECORD, ROOT, Group, Reports, changed, matching
from tests.support.tiers import FOLDERS, MARKS, NOT_FAST, TESTS, is_left_out
from tests.support.tools.tool import EVALUATORS, FRAMEWORKS, OUTLETS, PROMPTFOO, SDKS, wanted

ONE, OTHER = "one", "other"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of two groups, both recorded as passed."""
    groups = {
        ONE: Group(tests=["tests/test_one.py::test_x"], guards=["a.yaml", "locks/*.lock"]),
        OTHER: Group(tests=["tests/test_other.py"], guards=["room/**/*.py"]),
    }
    monkeypatch.setattr(guarded, "GROUPS", groups)
    for name in (*FILES[ONE], *FILES[OTHER], str(RECORD)):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    record = {name: each.digest(tmp_path) for name, each in groups.items()}
    (tmp_path / RECORD).write_text(json.dumps(record))
    return tmp_path


FILES = {
    ONE: ["tests/test_one.py", "a.yaml", "locks/first.lock", "locks/second.lock"],
    OTHER: ["tests/test_other.py", "room/top.py", "room/deep/down/low.py"],
}


def test_every_pattern_and_every_test_of_the_table_exists() -> None:
    for name, each in GROUPS.items():
        assert [pattern for pattern in each.patterns if not matching(pattern)] == [], name
        for test in each.tests:
            file, _, function = test.partition("::")
            assert not function or f"def {function}(" in (ROOT / file).read_text(), test
    assert json.loads((ROOT / RECORD).read_text()).keys() <= GROUPS.keys()


def test_a_group_is_due_once_a_guarded_file_changes_comes_goes_or_is_renamed(tree: Path) -> None:
    for name, files in FILES.items():
        for each in files:
            (tree / each).write_text("changed")
            assert changed(tree) == [name], each
            (tree / each).write_text(each)
            assert changed(tree) == []
    file = tree / "locks" / "first.lock"
    added = file.with_name("another.lock")
    added.write_text("")
    assert changed(tree) == [ONE]
    file.rename(added)
    assert changed(tree) == [ONE]
    (tree / RECORD).write_text("{}")
    assert changed(tree) == [ONE, OTHER], "a group that never passed"


def test_only_the_command_that_says_so_leaves_groups_out(monkeypatch: pytest.MonkeyPatch) -> None:
    image, kafka = GROUPS["image"], GROUPS["kafka"]
    outage = "tests/e2e/test_kafka_outage.py::test_a"
    monkeypatch.setattr(guarded, "changed", lambda: [each for each in GROUPS if each != "image"])
    monkeypatch.delenv(ONLY_DUE, raising=False)
    assert guarded.header() == guarded.not_due() == []

    monkeypatch.setenv(ONLY_DUE, "1")

    assert guarded.not_due() == ["image"]
    (line,) = guarded.header()
    assert line.endswith(": image")
    assert image.has("tests/e2e/test_image.py::test_x[1]")
    assert not image.has("tests/e2e/test_image_of_another.py::test_x")
    assert kafka.has(f"{outage}_short_outage_under_load[a]")
    assert not kafka.has(f"{outage}_stop_while_the_broker_is_away")


Outcome = Literal["passed", "failed", "skipped"]


def test_a_group_has_passed_when_its_last_test_ends_and_no_test_of_it_failed_or_was_skipped() -> (
    None
):
    said: list[str] = []
    reports = Reports(["image", "release", "clocks", "places"], said.append)
    outcomes: Sequence[tuple[str, Outcome]] = (
        ("tests/e2e/test_release.py::test_a", "passed"),
        ("tests/e2e/test_release.py::test_b", "skipped"),
        ("tests/e2e/test_clock_steps.py::test_a[1]", "failed"),
        ("tests/e2e/test_clock_steps.py::test_a[2]", "passed"),
        ("tests/e2e/test_odd_places.py::test_a", "passed"),
        ("tests/e2e/test_image.py::test_a", "passed"),
        ("tests/e2e/test_image.py::test_b", "passed"),
    )
    never_ends = "tests/e2e/test_odd_places.py::test_b"
    reports.pytest_xdist_node_collection_finished([*(test for test, _ in outcomes), never_ends])

    for test, outcome in outcomes:
        assert said == []
        for report in (
            pytest.TestReport(test, ("", None, ""), {}, outcome, None, "call"),
            pytest.TestReport(test, ("", None, ""), {}, "passed", None, "teardown"),
        ):
            reports.pytest_runtest_logreport(report)

    assert said == ["image"]


def test_a_tool_is_installed_while_a_test_that_needs_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every = [*OUTLETS, SDKS, *FRAMEWORKS, EVALUATORS, PROMPTFOO]
    assert wanted() == every

    monkeypatch.setenv(ONLY_DUE, "1")
    monkeypatch.setattr(guarded, "changed", lambda: ["outlets"])
    assert wanted() == [*OUTLETS, SDKS]
    monkeypatch.setattr(guarded, "changed", lambda: ["frameworks"])
    assert wanted() == [*FRAMEWORKS, EVALUATORS, PROMPTFOO]


# --- `make test` runs from the lock file alone: what would take more than that fails ---


def test_a_process_that_a_test_of_the_first_tier_starts_fails_it() -> None:
    with pytest.raises(pytest.fail.Exception, match="marked `process`"):
        subprocess.run(["true"], check=True)
    with pytest.raises(pytest.fail.Exception, match="marked `process`"):
        os.fork()


def test_the_makefile_names_every_folder_of_the_first_tier() -> None:
    (command,) = (
        each
        for each in (ROOT / "Makefile").read_text().splitlines()
        if each.startswith("\t$(FAST) tests/unit tests/prop") and "ignore" not in each
    )

    assert set(command.split()[1:]) == {f"tests/{each}" for each in FOLDERS}


def test_test_all_leaves_out_no_file_that_may_hold_one_of_its_tests() -> None:
    """`place` fails every test that is not `fast` in a file that would be left out."""
    left_out = {each for each in TESTS.rglob("test_*.py") if is_left_out(each, NOT_FAST)}

    assert len(left_out) > 150
    assert Path(__file__) not in left_out
    for each in left_out:
        assert not any(f"pytest.mark.{mark}" in each.read_text() for mark in MARKS), each
    assert not any(is_left_out(each, "") for each in left_out)
    assert f'-m "{NOT_FAST}"' in (ROOT / "Makefile").read_text()
