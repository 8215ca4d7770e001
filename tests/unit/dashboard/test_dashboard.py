"""The dashboard asks for series that there are, in their unit, and keeps the rules of Grafana's linter."""

import json
import re
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from collector.slo import expressions as promql
from scripts.dashboard import UID, dashboard
from scripts.dashboard.promql import AGENT, chosen
from scripts.dashboard.rows.overview import FIRING
from tests.support.dashboard_panels import Target, panels, targets
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
    asked = [target.asked("5m") for target in targets()]
    rules = [{"record": f"panel:{at}", "expr": each} for at, each in enumerate(asked)]
    groups = {"groups": [{"name": "panels", "rules": rules}]}
    (tmp_path / "panels.yml").write_text(yaml.safe_dump(groups))

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


ROOT = Path(__file__).parents[3]
UNITS = {"percentunit", "s", "bytes", "currencyUSD", "dateTimeAsIso", "short", "cpm", "none"}
ASKED = re.compile(r"\b(spanwise_[a-z0-9_]+)(\{[^}]*\})?")
RANGE = re.compile(r"(\w+)\(\s*\w+(?:\{[^}]*\})?\[([^\]]+)\]")
COUNTER = re.compile(r"(\w*)\(?(spanwise_[a-z0-9_]+_(?:total|count|bucket))\b(?:\{[^}]*\})?(\[?)")
OVERLAY = {"type": "prometheus", "uid": "${datasource}"}


def test_it_can_be_imported_and_replaced_but_not_edited() -> None:
    board = dashboard()

    assert (board["uid"], UID, board["editable"]) == ("spanwise-agents", "spanwise-agents", False)
    assert not {"id", "__inputs"} & board.keys()
    assert board["schemaVersion"] <= 38  # a newer one than Grafana 10's is not migrated there


def test_the_data_source_is_chosen_and_never_named() -> None:
    board = dashboard()
    (chosen,) = (e for e in board["templating"]["list"] if e["name"] == "datasource")

    kind = chosen["type"], chosen["query"], chosen["label"]
    assert kind == ("datasource", "prometheus", "Data source")
    shown = [*panels(board), *board["annotations"]["list"]]
    shown += [target for each in panels(board) for target in each["targets"]]
    assert all(each["datasource"] == OVERLAY for each in shown)
    assert set(re.findall(r'"uid": "([^"]+)"', json.dumps(board))) == {"${datasource}", UID}


@for_each("name", ["job", "service", "agent"])
def test_several_values_of_a_variable_can_be_chosen(name: str) -> None:
    (variable,) = (each for each in dashboard()["templating"]["list"] if each["name"] == name)

    assert {
        "type": "query",
        "label": name.capitalize(),
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "refresh": 2,  # values that come later are offered, too
        "datasource": OVERLAY,
    }.items() <= variable.items()


def test_every_selector_asks_for_the_chosen_jobs() -> None:
    for each in targets():
        found = ASKED.findall(each.expr)
        assert found or each.expr.removeprefix("count(").removesuffix(")") == FIRING, each.panel
        assert all('job=~"$job"' in matchers for _, matchers in found), each.panel


def test_rates_fit_the_scrapes_and_counters_are_never_shown_as_they_are() -> None:
    for each in targets():
        for function, window in RANGE.findall(each.expr):
            if function in {"rate", "irate"}:
                assert window == "$__rate_interval", each.panel
        for function, family, window in COUNTER.findall(each.expr):
            assert window == "[", f"{each.panel}: {family}"
            assert function in {"rate", "increase"}, f"{each.panel}: {family}"


def test_no_two_panels_are_in_one_place_and_every_one_is_on_the_grid() -> None:
    board = dashboard()
    groups = [board["panels"], *(each["panels"] for each in board["panels"] if "panels" in each)]
    for group in groups:
        for first, second in combinations(group, 2):
            a, b = first["gridPos"], second["gridPos"]
            beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
            above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
            assert beside or above, (first["title"], second["title"])
        assert all(each["gridPos"]["x"] + each["gridPos"]["w"] <= 24 for each in group)


def test_rows_that_are_folded_hold_their_panels_and_panels_say_what_they_are_in_which_unit() -> (
    None
):
    rows = [each for each in dashboard()["panels"] if each["type"] == "row"]
    ids = [each["id"] for each in (*panels(), *rows)]

    for each in panels():
        assert each["title"]
        assert each["description"].endswith(".")
        assert each["fieldConfig"]["defaults"]["unit"] in UNITS
        assert each["targets"]
    assert len({each["title"] for each in rows}) == len(rows)
    assert len(set(ids)) == len(ids)
    assert [each["title"] for each in rows if each.get("repeat") == "agent"] == ["Agent $agent"]
    assert all(bool(each["panels"]) == each["collapsed"] for each in rows)
    assert dashboard()["panels"][-1]["type"] != "row"


def test_exemplars_are_asked_for_where_counters_carry_them() -> None:
    asked = {
        family
        for panel in panels()
        for target in panel["targets"]
        if target["exemplar"] and panel["type"] == "timeseries"
        for family, _ in ASKED.findall(target["expr"])
    }

    assert asked == {"spanwise_evaluations_total", "spanwise_score_ratio_bucket"}
