"""The chart's README: every value with its meaning, and the metadata that Artifact Hub shows."""

import re
import tomllib
from typing import Any

import pytest
import yaml

from scripts.chart.places import CHART, HELM, ROOT
from scripts.chart.readme import readme, rows
from tests.chart.examples import REWRITE
from tests.chart.support import pods, render, spanwise, values

CHANGES = {"added", "changed", "deprecated", "removed", "fixed", "security"}


def chart() -> dict[str, Any]:
    return yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", ["README.md", "spanwise/README.md"])
def test_it_is_up_to_date(path: str) -> None:
    assert (HELM / path).read_text(encoding="utf-8") == readme()[path], REWRITE


def test_every_value_has_a_row_with_its_default() -> None:
    found = {each.key: each for each in rows()}

    assert found["mode"].default == '"standalone"'
    assert found["ports.grpc"].default == "4317"
    assert found["scaled.assemble.autoscaling.keda.lagThreshold"].type == "integer"
    for name in values((CHART / "values.yaml").read_text(encoding="utf-8")):
        assert any(key == name or key.startswith(f"{name}.") for key in found), name


def test_links_lead_to_files() -> None:
    for path, text in readme().items():
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert ((HELM / path).parent / link).exists(), f"{path}: {link}"


def test_the_chart_says_what_it_needs_and_which_version_it_brings() -> None:
    found = chart()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert found["apiVersion"] == "v2"
    assert found["kubeVersion"] == ">=1.30.0-0"
    assert found["appVersion"] == project["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", found["version"])


def test_artifact_hub_gets_images_changes_license_and_links() -> None:
    found = {
        key.removeprefix("artifacthub.io/"): yaml.safe_load(text)
        for key, text in chart()["annotations"].items()
    }
    (pod,) = (pod for name, pod in pods(render()).items() if name.startswith("StatefulSet"))

    assert found["license"] == "Apache-2.0"
    assert [each["image"] for each in found["images"]] == [spanwise(pod)["image"]]
    assert {each["kind"] for each in found["changes"]} <= CHANGES
    assert all(each["description"] for each in found["changes"])
    assert all(each["url"].startswith("https://") and each["name"] for each in found["links"])
    assert yaml.safe_load((HELM / "artifacthub-repo.yml").read_text(encoding="utf-8"))["owners"]
