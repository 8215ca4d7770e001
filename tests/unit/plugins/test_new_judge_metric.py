"""A new judge metric: a field in `collector/judging/families.py`, and the place in `judge_process.py` that counts.

The families of every room stand in `/metrics` before the first event. A room whose class is missing in `FAMILIES`, or
a family without its row in docs/operate.md, fails.
"""

import re
from collections.abc import Collection
from pathlib import Path

import pytest

import collector
from collector.base.telemetry import Telemetry
from collector.judging.families import JudgingFamilies
from collector.service import families as listed_families

FOLDER = Path(collector.__file__).parent
PAGE = (FOLDER.parent / "docs" / "operate.md").read_text()
ABOUT_AGENTS = FOLDER / "export" / "families.py"
"""Made by the exporter, in the one process that publishes."""


class NewFamilies(JudgingFamilies):
    """The field that a newcomer adds."""

    def __init__(self, telemetry: Telemetry) -> None:
        super().__init__(telemetry)
        self.of_this_test = telemetry.counter(
            "judge_family_of_this_test", "Answers that refuse.", "model"
        )


def undeclared(listed: Collection[object]) -> set[str]:
    """The files whose class is not in the list."""
    modules = {getattr(each, "__module__", "") for each in listed}
    return {
        str(path.relative_to(FOLDER))
        for path in FOLDER.rglob("families.py")
        if path != ABOUT_AGENTS
        and path.parent.name != "service"
        and "collector." + ".".join(path.relative_to(FOLDER).with_suffix("").parts) not in modules
    }


def exported() -> set[str]:
    telemetry = Telemetry()
    listed_families.declare_families(telemetry)
    return {each.name for each in telemetry.registry.collect()}


def unexplained(names: Collection[str]) -> set[str]:
    """The families that docs/operate.md does not name."""
    explained = {each.removesuffix("_total") for each in re.findall(r"spanwise_[a-z_]+", PAGE)}
    return {name.removesuffix("_info") for name in names} - {
        each.removesuffix("_info") for each in explained
    }


@pytest.fixture
def _field(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [NewFamilies if each is JudgingFamilies else each for each in listed_families.FAMILIES]
    monkeypatch.setattr(listed_families, "FAMILIES", tuple(listed))


@pytest.mark.usefixtures("_field")
def test_a_field_is_all_that_the_exposition_needs() -> None:
    assert "spanwise_judge_family_of_this_test" in exported()


@pytest.mark.usefixtures("_field")
def test_a_family_without_its_row_in_the_docs_is_named() -> None:
    assert unexplained(exported()) == {"spanwise_judge_family_of_this_test"}


def test_every_family_has_its_row() -> None:
    assert unexplained(exported()) == set()


def test_every_room_with_families_is_listed() -> None:
    assert undeclared(listed_families.FAMILIES) == set()


def test_a_room_that_is_not_listed_is_named() -> None:
    listed = [each for each in listed_families.FAMILIES if each is not JudgingFamilies]

    assert undeclared(listed) == {"judging/families.py"}
