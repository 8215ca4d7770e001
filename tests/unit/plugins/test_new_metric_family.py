"""A new metric family is one line in its room's `families.py`, and its row in docs/operate.md.

tests/unit/docs/test_docs_pages.py fails while the row is missing. A new room's class is a line in `FAMILIES`.
"""

import pkgutil
from importlib import import_module

import pytest
from prometheus_client import CollectorRegistry

import collector
from collector.base.telemetry import Telemetry
from collector.export.families import AgentFamilies
from collector.service import families
from collector.service.families import FAMILIES, declare_families


class NewFamilies:
    """The file that a newcomer adds, with its family."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.examples = telemetry.counter("family_of_this_test", "Examples, by reason.", "reason")


def unlisted() -> set[str]:
    """The classes of every `families.py` that FAMILIES lacks; those about agents belong to role `publish` alone."""
    modules = [
        import_module(each.name)
        for each in pkgutil.walk_packages(collector.__path__, "collector.")
        if each.name.endswith(".families") and each.name != families.__name__
    ]
    return {
        name
        for module in modules
        for name, value in vars(module).items()
        if name.endswith("Families") and value not in (*FAMILIES, AgentFamilies)
    }


def test_a_new_family_stands_in_the_exposition_before_the_first_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(families, "FAMILIES", (*FAMILIES, NewFamilies))
    telemetry = Telemetry(CollectorRegistry())

    declare_families(telemetry)
    NewFamilies(telemetry)  # the same one at every later call
    body, _ = telemetry.exposition("text/plain")

    assert b"# HELP spanwise_family_of_this_test_total Examples, by reason." in body


def test_a_forgotten_line_fails_here(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unlisted() == set()

    monkeypatch.setattr("collector.api.families.NewFamilies", NewFamilies, raising=False)

    assert unlisted() == {"NewFamilies"}
