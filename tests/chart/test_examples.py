"""Every example, the defaults among them, passes every check; `make chart` prints the same as a table."""

from collections.abc import Callable

import pytest
import yaml

from scripts.chart.examples import names
from scripts.chart.files import files
from scripts.chart.places import EXAMPLES, HELM
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


def test_every_example_was_rendered_by_the_first_version() -> None:
    assert {each.stem for each in examples.FIRST.glob("*.yaml")} <= set(names())
