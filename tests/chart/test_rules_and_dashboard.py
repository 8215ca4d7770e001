"""Rules and dashboard in the chart and in the mixin are those of the program, with what a user changes."""

import json
from pathlib import Path
from typing import Any

import _jsonnet
import pytest

from collector.slo.alerts import ALERTS
from collector.slo.rules import PAGE as LOCAL_PAGE
from collector.slo.rules import Rule, rules
from scripts.chart.examples import manifests, rendered
from scripts.chart.places import CHART, HELM
from scripts.dashboard import dashboard
from tests.chart.configuration import with_secrets
from tests.chart.support import one, services
from tests.support.promtool import run

PAGE = "http://agents-spanwise-admin.observability:4390"


def groups(config: dict[str, Any] | None = None, **values: Any) -> dict[str, list[Rule]]:
    rule = {"enabled": True, **values}
    found = manifests(rendered({"prometheusRule": rule, "config": config or {}}))
    made = one(found, "PrometheusRule", "agents-spanwise")["spec"]["groups"]
    return {each["name"]: each["rules"] for each in made}


def in_the_program(*, exported: bool) -> dict[str, list[Rule]]:
    """As `spanwise slo` gives them, with the field's name for the runbook."""
    found = {each["name"]: each["rules"] for each in rules(page=PAGE, exported=exported)}
    for rule in (rule for group in found.values() for rule in group):
        if "annotations" in rule:
            rule["annotations"]["runbook_url"] = rule["annotations"].pop("runbook")
    return found


def test_without_an_objective_the_rules_are_those_of_the_program() -> None:
    assert groups() == in_the_program(exported=False)


def test_an_objective_of_the_service_brings_the_burn_rates() -> None:
    everything = in_the_program(exported=True)

    assert groups({"slo": {"objective": 0.9}}) == everything
    assert groups({"evaluators": {"confidence": {"objective": 0.8}}}) == everything


def test_alerts_are_switched_off_and_labelled_one_by_one() -> None:
    found = groups(
        disabled={"JudgeBudgetLow": True, "AgentRunaway": False},
        alertLabels={"team": "agents"},
        labelsByAlert={"AgentEvaluatorBlind": {"severity": "page"}},
        runbookUrl="https://runbooks.example.com/agents",
        extraGroups=[{"name": "own", "rules": [{"record": "a:b", "expr": "1"}]}],
    )

    alerts = {each.get("alert", ""): each for each in found["spanwise"]}
    assert "JudgeBudgetLow" not in alerts
    assert "AgentRunaway" in alerts
    assert alerts["AgentEvaluatorBlind"].get("labels") == {"severity": "page", "team": "agents"}
    assert alerts["AgentScoresStale"].get("labels") == {"severity": "page", "team": "agents"}
    annotations = alerts["AgentRunaway"].get("annotations", {})
    assert annotations["runbook_url"] == "https://runbooks.example.com/agents#agentrunaway"
    assert found["own"] == [{"record": "a:b", "expr": "1"}]


def test_the_page_of_the_alerts_is_where_the_page_is() -> None:
    tokens = {"adminTokens": {"existingSecret": "admin"}}
    ingress = {"enabled": True, "hosts": ["scores.example.com"], "tls": [{"secretName": "page"}]}
    rule = {"enabled": True}

    found = manifests(rendered({"prometheusRule": rule, "ingress": ingress, "secrets": tokens}))

    made = one(found, "PrometheusRule", "agents-spanwise")["spec"]["groups"]
    pages = {rule["annotations"]["page"] for group in made for rule in group["rules"]}
    addresses = {page.partition("?")[0].split("/{{")[0].rstrip("/") for page in pages}
    assert addresses == {"https://scores.example.com", "https://scores.example.com/agreement"}


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/spanwise", "/spanwise"),
        ("/a/b/", "/a/b"),
        ("/spanwise(/|$)(.*)", "/spanwise"),
        ("/", None),
    ],
)
def test_the_path_of_the_ingress_is_the_base_path_of_the_page(path: str, base: str | None) -> None:
    tokens = {"adminTokens": {"existingSecret": "admin"}}
    ingress = {"enabled": True, "hosts": ["tools.example.com"], "path": path}

    found = manifests(rendered({"ingress": ingress, "secrets": tokens}))

    given = with_secrets(services(found)["StatefulSet/agents-spanwise"])
    assert given.get("SPANWISE_ADMIN__BASE_PATH") == base


def test_the_dashboard_is_the_one_of_the_files_and_the_operator_reads_it() -> None:
    values = {"enabled": True, "grafanaOperator": {"enabled": True}}

    found = manifests(rendered({"dashboard": values}))

    made = one(found, "ConfigMap", "agents-spanwise-dashboard")
    (key,) = made["data"]
    written = (CHART / "files/dashboard.json").read_text(encoding="utf-8")
    assert "127.0.0.1" not in made["data"][key]
    assert json.loads(made["data"][key]) == json.loads(written.replace(LOCAL_PAGE, PAGE))
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    resource = one(found, "GrafanaDashboard", "agents-spanwise-dashboard")
    assert resource["spec"]["configMapRef"] == {"name": made["metadata"]["name"], "key": key}


# --- the mixin, evaluated as jsonnet users do --------------------------------------------------------------------

MIXIN = HELM / "mixin"
SHOW = """
local mixin = (import 'mixin.libsonnet') + { _config+:: %s };
{
  dashboards: mixin.grafanaDashboards,
  alerts: mixin.prometheusAlerts,
  rules: mixin.prometheusRules,
}
"""


def evaluated(config: str = "{}") -> Any:
    text = _jsonnet.evaluate_snippet("test.jsonnet", SHOW % config, jpathdir=[str(MIXIN)])
    return json.loads(text)


def names(made: Any) -> list[str]:
    return [rule["alert"] for group in made["alerts"]["groups"] for rule in group["rules"]]


def test_the_rules_are_those_of_spanwise_slo() -> None:
    made = evaluated()

    expected = [rule for group in rules(exported=True) for rule in group["rules"]]
    recorded = [rule for group in made["rules"]["groups"] for rule in group["rules"]]
    alerts = [rule for group in made["alerts"]["groups"] for rule in group["rules"]]
    assert recorded == [rule for rule in expected if "record" in rule]
    for found, rule in zip(alerts, [r for r in expected if "alert" in r], strict=True):
        annotations = rule.get("annotations", {})
        assert {**found, "annotations": None} == {**rule, "annotations": None}
        assert found["annotations"] == {
            "summary": annotations["summary"],
            "description": annotations["description"],
            "page": annotations["page"],
            "runbook_url": annotations["runbook"],
        }
    assert names(made) == [each.name for each in ALERTS]


def test_the_dashboard_is_the_charts() -> None:
    assert evaluated()["dashboards"] == {"spanwise-agents.json": dashboard()}


def test_alerts_and_dashboard_lead_to_the_page_that_is_set() -> None:
    made = evaluated("{ page: 'https://spanwise.example.com' }")

    assert LOCAL_PAGE not in json.dumps(made)
    assert "https://spanwise.example.com/sessions?service=" in json.dumps(made["alerts"])
    assert "https://spanwise.example.com" in json.dumps(made["dashboards"])


def test_alerts_get_labels_and_can_be_left_out() -> None:
    made = evaluated(
        "{ alertLabels: { team: 'agents' }, disabledAlerts: ['JudgeBudgetLow'], objectives: false }"
    )

    assert set(names(made)) == {a.name for a in ALERTS if not a.needs_objective} - {
        "JudgeBudgetLow"
    }
    assert made["rules"]["groups"] == []
    for group in made["alerts"]["groups"]:
        assert all(rule["labels"]["team"] == "agents" for rule in group["rules"])
        assert all(rule["labels"]["severity"] for rule in group["rules"])


def test_promtool_takes_both_files(tmp_path: Path) -> None:
    made = evaluated()

    for name in ("rules", "alerts"):
        (tmp_path / f"{name}.yml").write_text(json.dumps(made[name]))
        checked = run("check", "rules", f"{name}.yml", folder=tmp_path)
        assert checked.returncode == 0, checked.stdout + checked.stderr
