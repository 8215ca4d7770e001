"""The examples of release gates are what the tools that read them take, and ask what Spanwise answers."""

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from jsonschema import Draft7Validator

from collector.api import compare as api
from collector.commands.cli import main
from tests.chart import crds

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "rollouts"
SCHEMAS = ROOT / "tests" / "data" / "ci"
COMMAND = re.compile(r"^spanwise (.+)$")


def example(name: str) -> Any:
    return yaml.load(
        (EXAMPLES / name).read_text("utf-8"), yaml.BaseLoader
    )  # `on` is not a truth here


@pytest.mark.parametrize("name", ["analysis-template.yaml", "canary.yaml"])
def test_a_custom_resource_fits_its_definition(name: str) -> None:
    manifest = yaml.safe_load((EXAMPLES / name).read_text("utf-8"))

    assert crds.problem(manifest) is None
    manifest["spec"]["unheard"] = 1
    assert crds.problem(manifest) is not None


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("github-workflow.yaml", "github-workflows.json"),
        ("gitlab-ci.yml", "gitlab-ci.json"),
    ],
)
def test_a_pipeline_fits_the_schema_of_its_tool(name: str, schema: str) -> None:
    validator: Any = Draft7Validator(json.loads((SCHEMAS / schema).read_text("utf-8")))
    written = yaml.safe_load((EXAMPLES / name).read_text("utf-8").replace("\non:", '\n"on":'))

    assert [each.message for each in validator.iter_errors(written)] == []


def test_gates_ask_by_parameters_that_there_are() -> None:
    (metric,) = example("analysis-template.yaml")["spec"]["metrics"]
    address = urlsplit(str(metric["provider"]["web"]["url"]))
    assert address.path == "/api/v1/compare"
    assert set(parse_qs(address.query)) <= set(api.PARAMETERS)

    for each in example("canary.yaml")["spec"]["analysis"]["webhooks"]:
        assert urlsplit(str(each["url"])).path == "/api/v1/compare/gate"
        assert set(each["metadata"]) <= {*api.PARAMETERS, "type"}
        assert each["metadata"]["type"] == each["type"]


@pytest.mark.parametrize("name", ["github-workflow.yaml", "gitlab-ci.yml"])
def test_the_command_of_a_pipeline_is_understood(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends at what is not there: the recordings, or the service."""
    text = (EXAMPLES / name).read_text("utf-8")
    lines = [line.strip().removeprefix("- ").removeprefix("run: ") for line in text.splitlines()]
    (command,) = (found[1] for line in lines if (found := COMMAND.match(line)))
    words = [word.replace("$SPANWISE_URL", "http://127.0.0.1:9") for word in shlex.split(command)]
    words = ["0" if word == "30m" else word for word in words]

    assert main(words) == 2
    said = capsys.readouterr().err
    assert "no such file" in said or "no answer" in said


def test_the_docs_show_these_examples() -> None:
    page = (ROOT / "docs" / "release-verdicts.md").read_text("utf-8")

    for path in EXAMPLES.iterdir():
        assert f"examples/rollouts/{path.name}" in page, path.name
