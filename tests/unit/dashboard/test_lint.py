"""The dashboard keeps the rules of Grafana's dashboard linter, and stands nowhere twice.

Left out: the linter's rules about a variable `instance`, because replicas are summed here.
"""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from scripts.dashboard import UID, dashboard
from scripts.dashboard.files import files
from scripts.dashboard.rows.overview import FIRING
from tests.support.dashboard_panels import panels, targets

ROOT = Path(__file__).parents[3]
UNITS = {"percentunit", "s", "bytes", "currencyUSD", "dateTimeAsIso", "short", "cpm", "none"}
SELECTOR = re.compile(r"\b(spanwise_[a-z0-9_]+)(\{[^}]*\})?")
RANGE = re.compile(r"(\w+)\(\s*\w+(?:\{[^}]*\})?\[([^\]]+)\]")
COUNTER = re.compile(r"(\w*)\(?(spanwise_[a-z0-9_]+_(?:total|count|bucket))\b(?:\{[^}]*\})?(\[?)")
OVERLAY = {"type": "prometheus", "uid": "${datasource}"}


def variables() -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in dashboard()["templating"]["list"]}


def test_the_chart_has_the_dashboard_that_the_source_makes() -> None:
    written = (ROOT / "helm/spanwise/files/dashboard.json").read_text(encoding="utf-8")

    assert written == files()["spanwise/files/dashboard.json"]


def test_it_can_be_imported_and_replaced_but_not_edited() -> None:
    board = dashboard()

    assert board["uid"] == UID == "spanwise-agents"
    assert board["editable"] is False
    assert "id" not in board
    assert "__inputs" not in board
    assert board["schemaVersion"] <= 38  # a newer one than Grafana 10's is not migrated there


def test_the_data_source_is_chosen_and_never_named() -> None:
    board = dashboard()
    chosen = variables()["datasource"]

    kind = chosen["type"], chosen["query"], chosen["label"]
    assert kind == ("datasource", "prometheus", "Data source")
    shown = [*panels(board), *board["annotations"]["list"]]
    shown += [target for each in panels(board) for target in each["targets"]]
    assert all(each["datasource"] == OVERLAY for each in shown)
    assert set(re.findall(r'"uid": "([^"]+)"', json.dumps(board))) == {"${datasource}", UID}


@pytest.mark.parametrize("name", ["job", "service", "agent"])
def test_several_values_of_a_variable_can_be_chosen(name: str) -> None:
    variable = variables()[name]

    assert (variable["type"], variable["label"]) == ("query", name.capitalize())
    assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".+")
    assert variable["refresh"] == 2  # values that come later are offered, too
    assert variable["datasource"] == OVERLAY


def test_every_panel_says_what_it_is_in_which_unit() -> None:
    for each in panels():
        assert each["title"]
        assert each["description"].endswith(".")
        assert each["fieldConfig"]["defaults"]["unit"] in UNITS
        assert each["targets"]

    rows = [each for each in dashboard()["panels"] if each["type"] == "row"]
    ids = [each["id"] for each in (*panels(), *rows)]
    assert len({each["title"] for each in rows}) == len(rows)
    assert len(set(ids)) == len(ids)


def test_every_selector_asks_for_the_chosen_jobs() -> None:
    for each in targets():
        found = SELECTOR.findall(each.expr)
        assert found or each.expr.removeprefix("count(").removesuffix(")") == FIRING, each.panel
        assert all('job=~"$job"' in matchers for _, matchers in found), each.panel


def test_rates_are_over_an_interval_that_fits_the_scrapes() -> None:
    for each in targets():
        for function, window in RANGE.findall(each.expr):
            if function in {"rate", "irate"}:
                assert window == "$__rate_interval", each.panel


def test_counters_are_never_shown_as_they_are() -> None:
    for each in targets():
        for function, family, window in COUNTER.findall(each.expr):
            assert window == "[", f"{each.panel}: {family}"
            assert function in {"rate", "increase"}, f"{each.panel}: {family}"


def test_no_two_panels_stand_in_one_place_and_none_beside_the_grid() -> None:
    board = dashboard()
    groups = [board["panels"], *(each["panels"] for each in board["panels"] if "panels" in each)]
    for group in groups:
        for first, second in combinations(group, 2):
            a, b = first["gridPos"], second["gridPos"]
            apart = (
                a["x"] + a["w"] <= b["x"]
                or b["x"] + b["w"] <= a["x"]
                or a["y"] + a["h"] <= b["y"]
                or b["y"] + b["h"] <= a["y"]
            )
            assert apart, (first["title"], second["title"])
        assert all(each["gridPos"]["x"] + each["gridPos"]["w"] <= 24 for each in group)


def test_an_agent_has_a_row_of_its_own_and_rows_that_are_folded_hold_their_panels() -> None:
    rows = [each for each in dashboard()["panels"] if each["type"] == "row"]

    assert [each["title"] for each in rows if each.get("repeat") == "agent"] == ["Agent $agent"]
    assert all(bool(each["panels"]) == each["collapsed"] for each in rows)
    assert dashboard()["panels"][-1]["type"] != "row"


def test_exemplars_are_asked_for_where_counters_carry_them() -> None:
    asked = [
        target["expr"]
        for panel in panels()
        for target in panel["targets"]
        if target["exemplar"] and panel["type"] == "timeseries"
    ]

    families = {family for family, _ in SELECTOR.findall(" ".join(asked))}
    assert families == {"spanwise_evaluations_total", "spanwise_score_ratio_bucket"}
