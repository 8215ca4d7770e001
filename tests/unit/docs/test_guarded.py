"""The table of costly tests: every name in it exists, and a change of any guarded file makes its group due."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support import guarded
from tests.support.guarded import GROUPS, ONLY_DUE, RECORD, ROOT, changed, matching

ONE = "image"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what is guarded, all of it recorded as passed."""
    for file in {f for each in GROUPS.values() for p in each.patterns for f in matching(p)}:
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    record = tmp_path / RECORD
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps({name: each.digest(tmp_path) for name, each in GROUPS.items()}))
    return tmp_path


def test_every_pattern_and_every_test_of_the_table_exists() -> None:
    for name, each in GROUPS.items():
        assert [pattern for pattern in each.patterns if not matching(pattern)] == [], name
        for test in each.tests:
            file, _, function = test.partition("::")
            assert not function or f"def {function}(" in (ROOT / file).read_text(), test
    assert json.loads((ROOT / RECORD).read_text()).keys() <= GROUPS.keys()


def test_a_change_of_any_guarded_file_makes_its_group_due(tree: Path) -> None:
    missed: list[tuple[str, Path]] = []
    assert changed(tree) == []
    for name, group in GROUPS.items():
        passed = group.digest(tree)
        for pattern in group.patterns:
            file = matching(pattern, tree)[0]
            before = file.read_bytes()
            file.write_bytes(before + b" ")
            if group.digest(tree) == passed:
                missed.append((name, file))
            file.write_bytes(before)

    assert missed == []


def test_a_file_that_comes_goes_or_is_renamed_does_too(tree: Path) -> None:
    file = tree / "locks" / "requirements.lock"
    added = file.with_name("another.lock")
    added.write_text("")
    assert ONE in changed(tree)
    added.unlink()
    assert ONE not in changed(tree)
    file.rename(added)
    assert ONE in changed(tree)


def test_a_group_that_never_passed_is_due(tree: Path) -> None:
    (tree / RECORD).write_text("{}")

    assert changed(tree) == list(GROUPS)


def test_only_the_command_that_says_so_leaves_groups_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "changed", lambda: [each for each in GROUPS if each != ONE])
    monkeypatch.delenv(ONLY_DUE, raising=False)
    assert guarded.header() == guarded.not_due() == []

    monkeypatch.setenv(ONLY_DUE, "1")

    assert guarded.not_due() == [ONE]
    (line,) = guarded.header()
    assert line.endswith(f": {ONE}")


def test_what_is_left_out_is_the_groups_tests_alone() -> None:
    image, kafka = GROUPS["image"], GROUPS["kafka"]

    assert image.has("tests/e2e/test_image.py::test_x[1]")
    assert not image.has("tests/e2e/test_image_of_another.py::test_x")
    assert kafka.has("tests/e2e/test_kafka_outage.py::test_a_short_outage_under_load[a]")
    assert not kafka.has("tests/e2e/test_kafka_outage.py::test_a_stop_while_the_broker_is_away")
