"""The dashboard asks for series that there are, by labels that they have, and shows them in their unit."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from collector.slo import expressions as promql
from scripts.dashboard.promql import AGENT, chosen
from tests.support.dashboard_panels import Target, targets
from tests.support.declared_families import declared_families
from tests.support.promtool import run
from tests.support.table import for_each

SELECTOR = re.compile(r"\b(spanwise_[a-z0-9_]+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)(?:=~|!~|!=|=)")
BY = re.compile(r"\bby \(([^)]*)\)")
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds."""
SUFFIX = {
    "_usd": "currencyUSD",
    "_bytes": "bytes",
    "_timestamp_seconds": "dateTimeAsIso",
    "_seconds": "s",
    "_ratio": "percentunit",
}


@cache
def families() -> dict[str, set[str]]:
    """Labels by the name of the series."""
    found: dict[str, set[str]] = {}
    for name, labels in declared_families().items():
        found[name] = set(labels)
        if name.endswith("_count"):
            found[f"{name.removesuffix('_count')}_bucket"] = {*labels, "le"}
    return found


@for_each("target", targets())
def test_every_series_that_is_asked_for_is_declared_with_its_labels(target: Target) -> None:
    known = families()
    used: set[str] = set()
    for family, matchers in SELECTOR.findall(target.expr):
        assert family in known, family
        assert set(LABEL.findall(matchers)) <= known[family] | SCRAPED | {"version"}, matchers
        used |= known[family]
    for labels in BY.findall(target.expr):
        assert set(re.findall(r"\w+", labels)) <= used | SCRAPED | {"version", "agent"}, labels


@for_each("target", targets())
def test_the_unit_is_the_series_own(target: Target) -> None:
    """A ratio of two families is a share; what is counted is a count, or so many a minute."""
    measured = {unit_of(family) for family, _ in SELECTOR.findall(target.expr)} - {None}
    if target.unit == "percentunit":
        assert " / " in target.expr or "\n/\n" in target.expr or measured <= {"percentunit"}
    elif target.expr.startswith("time() - "):
        assert (target.unit, measured) == ("s", {"dateTimeAsIso"})
    elif target.unit == "dateTimeAsIso":
        assert target.expr.startswith("1000 * ")  # Grafana reads milliseconds
        assert measured == {"dateTimeAsIso"}
    elif target.unit in {"short", "cpm", "none"}:
        assert not measured
        assert (target.unit == "cpm") == target.expr.startswith("60 * ")
    else:
        assert measured == {target.unit}


def unit_of(family: str) -> str | None:
    if family.endswith(("_count", "_detected")):
        return None
    name = family.removesuffix("_total").removesuffix("_bucket")
    return next((unit for suffix, unit in SUFFIX.items() if name.endswith(suffix)), None)


@pytest.mark.process
def test_prometheus_can_read_every_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": target.asked("5m")}
        for number, target in enumerate(targets())
    ]
    (tmp_path / "panels.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]})
    )

    checked = run("check", "rules", "panels.yml", folder=tmp_path)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules)} rules found" in checked.stdout


def test_what_alerts_ask_is_what_the_panels_show() -> None:
    shown = {target.expr for target in targets()}

    assert {
        chosen(promql.fail_ratio("$__rate_interval"), AGENT),
        chosen(promql.DRIFT, AGENT),
        chosen(promql.RUNAWAYS, AGENT),
        chosen(promql.BUDGET_LEFT, ("job",)),
        chosen(promql.OUTBOX_AGE, ("job",)),
        chosen(promql.SCORING_AGE, ("job",)),
        chosen(promql.SCORE_AGE, ("job", "service")),
    } <= shown
