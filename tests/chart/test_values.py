"""Values and README say what they are: each value has its comment, its place in a closed schema, and its row."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, cast

import yaml

from scripts.chart.places import CHART, HELM, ROOT
from scripts.chart.readme import readme, rows
from scripts.chart.schema import values_schema
from tests.chart.examples import REWRITE
from tests.chart.support import pods, render, spanwise, values

TEXT = (CHART / "values.yaml").read_text(encoding="utf-8")
SCHEMA = values_schema()
OPEN = {"EvaluatorConfig"}
"""Sections of the settings that take what they do not name: options of evaluators."""


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Every value with its line. A block that has a comment of its own is one value."""
    for key, value in node.value:
        at, line = f"{path}.{key.value}".removeprefix("."), int(key.start_mark.line)
        is_block = isinstance(value, yaml.MappingNode) and not value.flow_style
        if is_block and not is_commented(line):
            yield from leaves(value, at)
        else:
            yield at, line


def is_commented(line: int) -> bool:
    """Whether a comment that begins with `# --` stands right above."""
    above = TEXT.splitlines()[:line]
    while above[-1].strip().startswith("#") and not above[-1].strip().startswith("# --"):
        above.pop()
    return above[-1].strip().startswith("# --")


def test_every_value_has_a_comment() -> None:
    root = yaml.SafeLoader(TEXT).get_single_node()

    assert [path for path, line in leaves(root) if not is_commented(line)] == []


def test_the_schema_has_the_keys_of_the_values_and_two_for_parent_charts() -> None:
    keys = values(TEXT).keys()

    assert SCHEMA["properties"].keys() - keys == {"global", "enabled"}
    assert keys <= SCHEMA["properties"].keys()


def objects(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema with properties, by its path; conditions only narrow what others close."""
    if isinstance(node, list):
        for at, each in enumerate(cast(list[Any], node)):
            yield from objects(each, f"{path}/{at}")
    elif isinstance(node, dict):
        schema = cast(dict[str, Any], node)
        if isinstance(schema.get("properties"), dict) and "type" in schema:
            yield path, schema
        for key, each in schema.items():
            if key not in {"if", "then", "onKafka"}:
                yield from objects(each, f"{path}/{key}")


def test_no_object_takes_an_unknown_key() -> None:
    found = dict(objects(SCHEMA))

    open_ones = [path for path, each in found.items() if each.get("additionalProperties")]

    assert len(found) > 80
    assert {path.rpartition("/")[2] for path in open_ones} <= OPEN
    assert [path for path, each in found.items() if "additionalProperties" not in each] == []


# --- the README and the metadata that Artifact Hub shows --------------------------------------------------------

ABOUT: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
CHANGES = {"added", "changed", "deprecated", "removed", "fixed", "security"}


def test_the_readmes_are_up_to_date_and_their_links_lead_to_files() -> None:
    assert readme().keys() == {"README.md", "spanwise/README.md"}
    for path, text in readme().items():
        assert (HELM / path).read_text(encoding="utf-8") == text, REWRITE
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert ((HELM / path).parent / link).exists(), f"{path}: {link}"


def test_every_value_has_a_row_with_its_default() -> None:
    found = {each.key: each for each in rows()}

    assert found["mode"].default == '"standalone"'
    assert found["ports.grpc"].default == "4317"
    assert found["scaled.assemble.autoscaling.keda.lagThreshold"].type == "integer"
    for name in values(TEXT):
        assert any(key == name or key.startswith(f"{name}.") for key in found), name


def test_the_chart_says_what_it_needs_and_which_version_it_brings() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert ABOUT["apiVersion"] == "v2"
    assert ABOUT["kubeVersion"] == ">=1.30.0-0"
    assert ABOUT["appVersion"] == project["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", ABOUT["version"])


def test_artifact_hub_gets_images_changes_license_and_links() -> None:
    found = {
        key.removeprefix("artifacthub.io/"): yaml.safe_load(text)
        for key, text in ABOUT["annotations"].items()
    }
    (pod,) = (pod for name, pod in pods(render()).items() if name.startswith("StatefulSet"))

    assert found["license"] == "Apache-2.0"
    assert [each["image"] for each in found["images"]] == [spanwise(pod)["image"]]
    assert {each["kind"] for each in found["changes"]} <= CHANGES
    assert all(each["description"] for each in found["changes"])
    assert all(each["url"].startswith("https://") and each["name"] for each in found["links"])
    assert yaml.safe_load((HELM / "artifacthub-repo.yml").read_text(encoding="utf-8"))["owners"]
