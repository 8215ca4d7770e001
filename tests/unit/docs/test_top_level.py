"""What a visitor sees first: the top of the tree holds what belongs there, and no script makes anything else there."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ran

ROOT = Path(__file__).parents[3]
FOLDERS = {
    *(".ci", "collector", "compose", "docs", "evaluators", "examples", "helm", "locks", "scripts"),
    *("spanwise", "tests", "typings"),
}
FILES = {
    *(".dockerignore", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "Dockerfile", "LICENSE"),
    *("Makefile", "README.md", "SECURITY.md", "compose.yaml", "pyproject.toml", "spanwise.yaml"),
}


@pytest.mark.process
def test_the_top_of_the_tree_holds_what_belongs_there() -> None:
    listed = subprocess.run(
        ["git", "ls-tree", "--name-only", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert set(listed.stdout.split()) == FOLDERS | FILES


@pytest.mark.process
@pytest.mark.parametrize("script", ["chart", "docs", "front_picture", "site"])
def test_help_is_no_path_for_a_script(tmp_path: Path, script: str) -> None:
    asked = ran(
        *(sys.executable, "-m", f"scripts.{script}", "--help"),
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )

    assert (asked.returncode, asked.stdout[:6]) == (0, "usage:"), asked.stderr
    assert [*tmp_path.iterdir()] == []
