"""What README.md shows works: its Python is run, its command lines exist."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from collector import cli
from collector.config.load import load
from evaluators.declare import declared
from scripts.false_alarms import HEALTHY, RECORDINGS, TROUBLED
from tests.support.command import spanwise
from tests.support.service import ROOT

README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
pytestmark = [pytest.mark.e2e]


def blocks(*languages: str) -> list[str]:
    """The code blocks of these languages, in order."""
    return [code for language, code in BLOCK.findall(README.read_text()) if language in languages]


def lines() -> Iterator[str]:
    """Command lines of shell blocks, continued lines joined, prompts and comments left out."""
    for block in blocks("sh", "bash", "console", "shell"):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.strip().removeprefix("$ ")


def commands() -> list[list[str]]:
    """The arguments of every `spanwise ...` that is shown, in a block or within a sentence."""
    found: dict[str, list[str]] = {}
    within = re.findall(r"`([^`\n]*\bspanwise [^`\n]*)`", README.read_text())
    for line in (*lines(), *within):
        for part in re.split(r"\||&&|;", line):
            words = shlex.split(part, comments=True)
            while words and re.fullmatch(r"[A-Z_][A-Z0-9_]*=.*", words[0]):
                words.pop(0)
            if len(words) > 1 and Path(words[0]).name == "spanwise":
                found[" ".join(words[1:])] = words[1:]
    return list(found.values())


def test_there_are_commands_and_python() -> None:
    assert commands()
    assert blocks("python")


@pytest.mark.parametrize("name", sorted({each[0] for each in commands()}))
def test_every_command_shown_exists(name: str) -> None:
    assert name in {*cli.COMMANDS, "--version", "--help"}


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_option_shown_exists(arguments: list[str]) -> None:
    """Read from the command's own help, because running them would serve or need files."""
    shown = [each.partition("=")[0] for each in arguments if each.startswith("--")]
    words = [each for each in arguments[:2] if re.fullmatch(r"[a-z]+", each)]
    depth = 2 if words[:1] == ["config"] else 1

    helped = spanwise(*words[:depth], "--help")

    assert helped.code == 0, helped.err
    assert [option for option in shown if option not in helped.out] == []


def test_every_setting_shown_exists() -> None:
    """`--set a.b=c` and SPANWISE_A__B=c, loaded as they stand."""
    overrides = [
        value for words in commands() for flag, value in pairwise(words) if flag == "--set"
    ]
    variables = dict(re.findall(r"\b(SPANWISE_[A-Z_]+__[A-Z_]+)=(\S+?)[`\s]", README.read_text()))

    assert load([], variables, overrides)


@pytest.mark.parametrize(("scenarios", "code"), [(HEALTHY, 0), (TROUBLED, 1)])
def test_the_limit_shown_passes_for_healthy_agents_and_for_no_others(
    scenarios: frozenset[str], code: int, tmp_path: Path
) -> None:
    """`evaluate recordings/ --fail-under ...` as it stands, over the tests' recordings."""
    (shown,) = [words for words in commands() if "--fail-under" in words]
    for path in RECORDINGS.glob("*/*.otlp"):
        if path.stem in scenarios:
            folder = tmp_path / "recordings" / path.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder)

    here = [str(tmp_path / word) if word.startswith("recordings") else word for word in shown]
    done = spanwise(*here)

    assert done.code == code, done.err or done.out[-2000:]


PYTHON = blocks("python", "py")


@pytest.mark.parametrize("code", PYTHON, ids=[f"block {n + 1}" for n in range(len(PYTHON))])
def test_every_python_block_runs(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a module; one with `@evaluator` must declare an evaluator. Its exporters find nobody at home."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    module = tmp_path / "block.py"
    module.write_text(code)

    made = runpy.run_path(str(module))

    if "@evaluator" in code:
        specs = [spec for value in made.values() if (spec := declared(value)) is not None]
        assert specs, "the block declares no evaluator"


def test_every_file_that_it_names_is_there() -> None:
    text = README.read_text()
    linked = [
        each
        for each in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
        if "://" not in each and not each.startswith("mailto:")
    ]

    assert [each for each in linked if not (ROOT / os.path.normpath(each)).exists()] == []
