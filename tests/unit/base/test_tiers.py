"""`make test` runs from the lock file alone: what would take more than that fails."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.service import ROOT
from tests.support.tiers import FOLDERS, MARKS, NOT_FAST, TESTS, is_left_out


def test_a_process_that_a_test_of_the_first_tier_starts_fails_it() -> None:
    with pytest.raises(pytest.fail.Exception, match="marked `process`"):
        subprocess.run(["true"], check=True)
    with pytest.raises(pytest.fail.Exception, match="marked `process`"):
        os.fork()


@pytest.mark.process
def test_a_marked_one_may() -> None:
    subprocess.run(["true"], check=True)


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

    assert len(left_out) > 300
    assert Path(__file__) not in left_out
    for each in left_out:
        assert not any(f"pytest.mark.{mark}" in each.read_text() for mark in MARKS), each
    assert not any(is_left_out(each, "") for each in left_out)
    assert f'-m "{NOT_FAST}"' in (ROOT / "Makefile").read_text()
