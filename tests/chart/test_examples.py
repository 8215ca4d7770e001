"""Every example, the defaults among them, passes every check; `make chart` prints the same as a table."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scripts.chart.examples import names
from scripts.chart.files import files
from scripts.chart.places import EXAMPLES, HELM
from tests.chart import __main__ as table
from tests.chart import examples
from tests.chart.examples import CHECKS, Found
from tests.support.promtool import promtool


@pytest.mark.parametrize("example", names())
@pytest.mark.parametrize("check", CHECKS.values(), ids=list(CHECKS))
def test_example(example: str, check: Callable[[str], Found]) -> None:
    if check is examples.rules:
        promtool()

    assert not check(example).problems


def test_the_defaults_are_an_example() -> None:
    assert yaml.safe_load((EXAMPLES / "default" / "values.yaml").read_text()) == {}


@pytest.mark.parametrize("path", files())
def test_generated_file_is_what_its_source_says(path: str) -> None:
    assert (HELM / path).read_text(encoding="utf-8") == files()[path], examples.REWRITE


def test_a_stale_rendering_is_reported_with_the_command_that_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(HELM, tmp_path / "helm")
    stale = tmp_path / "helm" / "spanwise" / "examples" / "default" / "rendered.yaml"
    stale.write_text(stale.read_text().replace("4317", "4316"))
    monkeypatch.setattr(examples, "HELM", tmp_path / "helm")

    assert examples.golden("default").problems == [
        "spanwise/examples/default/rendered.yaml is stale: `python -m scripts.chart` writes it again"
    ]


def test_the_table_says_what_is_wrong_and_ends_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(example: str) -> Found:
        return Found(
            looked_at="", problems=["Pod/a: spec.image: missing"] if example == "default" else []
        )

    monkeypatch.setattr(table, "CHECKS", {"1.30": broken})

    assert table.main() == 1
    assert "default, 1.30: Pod/a: spec.image: missing" in capsys.readouterr().out
