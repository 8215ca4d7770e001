"""`make test` runs from the lock file alone: what would take more than that fails."""

import os
import subprocess

import pytest

from tests.support.service import ROOT
from tests.support.tiers import FOLDERS


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
