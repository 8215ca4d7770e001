"""The examples of docs/expectations.md are run: its expectations against a recording, its settings by the loader."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from collector.config.load import load
from evaluators.expectations import Expectation
from evaluators.registry import Registry
from scripts.docs import ROOT
from tests.support.command import spanwise

PAGE = (ROOT / "docs" / "expectations.md").read_text()
BLOCKS: list[str] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
RECORDING = ROOT / "tests" / "data" / "captures" / "strands" / "retry.otlp"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files of the page, under the names that their first lines give."""
    for block in BLOCKS:
        (name,) = re.findall(r"^# (\S+\.yaml)", block)
        with (tmp_path / name).open("a") as file:
            file.write(block)
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings" / RECORDING.name).write_bytes(RECORDING.read_bytes())
    return tmp_path


def test_its_settings_are_loaded_as_they_stand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)

    config = load([Path("spanwise.yaml")], {"OPENAI_API_KEY": "sk-test"}, [])

    assert config.judge.model == "gpt-4o-mini"
    assert config.judge.budget.usd_per_day == 2
    assert set(config.judges) == {"professional_tone", "goal_reached"}


@pytest.mark.process
def test_its_expectations_are_met_by_the_recording_that_they_are_about(folder: Path) -> None:
    (folder / "only.yaml").write_text("expectations: expectations.yaml\n")
    (shown,) = re.findall(r"^spanwise (evaluate .*)$", PAGE, re.MULTILINE)
    words = [each.replace("spanwise.yaml", "only.yaml") for each in shlex.split(shown)]

    done = spanwise(*words, "--format", "jsonl", cwd=folder)

    assert done.code == 0, done.err
    signals = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    found = {each["evaluator"]: each["score"] for each in signals if each["scope"] == "trace"}
    assert found["regex"] == found["contains"] == found["tool_expectations"] == 1.0
    assert found["exact_match"] == 0.0


@pytest.mark.process
def test_an_answer_that_differs_fails_the_command(folder: Path) -> None:
    entries = yaml.safe_load((folder / "expectations.yaml").read_text())
    entries[0]["regex"] = "CP-0000"
    (folder / "expectations.yaml").write_text(yaml.safe_dump(entries))
    (folder / "only.yaml").write_text("expectations: expectations.yaml\n")

    done = spanwise(
        "evaluate", "recordings/", "--config", "only.yaml", "--fail-under", "regex=1", cwd=folder
    )

    assert done.code == 1


def test_every_field_of_an_expectation_and_its_evaluators_are_named() -> None:
    linked = set(re.findall(r"\[`(\w+)`\]\(evaluators\.md#", PAGE))

    assert set(Expectation.__struct_fields__) <= set(re.findall(r"`(\w+)`", PAGE))
    assert linked <= {spec.name for spec in Registry.discover()}
