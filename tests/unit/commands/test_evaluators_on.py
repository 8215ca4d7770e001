"""`evaluators --config`: what a configuration turns on, and with which options."""

import json
from pathlib import Path

import pytest

from tests.support.command import Run

CONFIG = """
evaluators:
  tool_correctness: {threshold: 0.9}
  coherence: {enabled: false}
judge: {model: openai/gpt-4o-mini}
judges:
  polite: {rubric: "Is it polite?"}
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "spanwise.yaml"
    file.write_text(CONFIG)
    return str(file)


def test_rows_say_what_is_on_and_the_threshold_in_force(config: str, run: Run) -> None:
    rows = json.loads(run("evaluators", "--config", config, "--format", "json").out)

    on = {(each["name"], each["method"]): each for each in rows if each["on"]}
    assert on["tool_correctness", "deterministic"]["threshold"] == 0.9
    assert not [key for key in on if key[0] == "coherence"]
    assert ("polite", "llm_judge") in on
    assert {each["on"] for each in rows} == {True, False}


def test_the_table_has_a_column_for_it(config: str, run: Run) -> None:
    heads, *rows = run("evaluators", "--config", config).out.splitlines()

    assert heads.split()[:2] == ["NAME", "ON"]
    assert {row.split()[1] for row in rows} == {"yes", "-"}


def test_without_a_configuration_nothing_is_said_of_it(run: Run) -> None:
    rows = json.loads(run("evaluators", "--format", "json").out)

    assert not [each for each in rows if "on" in each]
