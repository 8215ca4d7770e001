"""What an installation brings, and what nothing needs is left out; what the tree has at its top."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from scripts.sizes import LIMIT, ROOT, locked, sizes, table
from tests.support.processes import ran
from tests.support.table import for_each

LOCKS = ("requirements.lock", "requirements-dev.lock")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "install.md").read_text()


def test_what_the_lock_brings_stays_below_its_limit() -> None:
    found = sizes()

    assert len(found) > 60
    assert sum(each.megabytes for each in found) < LIMIT, table(found)


@for_each("lock", LOCKS)
def test_the_lock_leaves_out_what_no_process_needs_to_start(lock: str) -> None:
    excludes = (ROOT / "locks" / "requirements-excludes.txt").read_text()
    left_out = set(re.findall(r"^([\w-]+)", excludes, re.MULTILINE))
    names = set(locked((ROOT / "locks" / lock).read_text()))

    assert left_out == {"boto3", "huggingface-hub"}
    assert not names & {*left_out, "botocore", "hf-xet", "fsspec"}
    assert names >= {"litellm", "wordllama", "numpy"}


def test_the_lock_of_bedrock_adds_to_the_other_and_changes_nothing_of_it() -> None:
    pins = re.compile(r"^(\S+)==(\S+)", re.MULTILINE)
    ours = dict(pins.findall((ROOT / "locks" / "requirements.lock").read_text()))
    added = dict(pins.findall((ROOT / "locks" / "requirements-bedrock.lock").read_text()))
    (extra,) = PROJECT["optional-dependencies"]["bedrock"]

    assert Requirement(extra).specifier.contains(added["boto3"])
    assert {name: ours[name] for name in ours.keys() & added.keys()}.items() <= added.items()


@for_each("version", ["1.82.7", "1.82.8"])
def test_a_poisoned_litellm_is_never_installed(version: str) -> None:
    asked = {each.name: each for each in map(Requirement, PROJECT["dependencies"])}["litellm"]

    assert not asked.specifier.contains(version)
    assert asked.specifier.contains("1.82.6")
    for lock in LOCKS:
        assert f"litellm=={version}" not in (ROOT / "locks" / lock).read_text()


def test_one_file_imports_litellm_and_only_when_it_is_asked_to() -> None:
    imported = re.compile(r"^( *)(?:import|from) litellm\b", re.MULTILINE)
    files = [each for name in ("collector", "evaluators") for each in (ROOT / name).rglob("*.py")]
    found = {file: imported.findall(file.read_text()) for file in files}
    provider = ROOT / "evaluators" / "providers" / "litellm.py"

    assert {file for file, indents in found.items() if indents} == {provider}
    assert "" not in found[provider], "at the top"


def test_the_page_says_the_sizes_of_what_is_locked_and_the_pythons_that_are_classified() -> None:
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (\d+) \| ([^|]*) \|$", PAGE, re.MULTILINE)
    (total,) = re.findall(r"^\| \*\*in all\*\* \| (\d+) \|", PAGE, re.MULTILINE)
    names = locked((ROOT / "locks" / LOCKS[0]).read_text())
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))

    assert {"litellm", "numpy", "wordllama"} <= {name for name, *_ in rows} <= set(names)
    assert sum(int(size) for _, size, _ in rows) <= int(total) < LIMIT
    assert classified == ["3.11", "3.12", "3.13"]
    assert "Python 3.11 to 3.13" in PAGE


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
    listed = subprocess.check_output(["git", "ls-tree", "--name-only", "HEAD"], cwd=ROOT, text=True)

    assert set(listed.split()) == FOLDERS | FILES


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
