"""Rules and dashboard in the chart are those of the program, with what the values change."""

import json
from typing import Any

import pytest

from collector.slo.rules import PAGE as LOCAL_PAGE
from collector.slo.rules import Rule, rules
from scripts.chart.examples import manifests, rendered
from scripts.chart.places import CHART
from tests.chart.configuration import with_secrets
from tests.chart.support import one, services

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
    dashboard = {"enabled": True, "grafanaOperator": {"enabled": True}}

    found = manifests(rendered({"dashboard": dashboard}))

    made = one(found, "ConfigMap", "agents-spanwise-dashboard")
    (key,) = made["data"]
    written = (CHART / "files/dashboard.json").read_text(encoding="utf-8")
    assert "127.0.0.1" not in made["data"][key]
    assert json.loads(made["data"][key]) == json.loads(written.replace(LOCAL_PAGE, PAGE))
    assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
    resource = one(found, "GrafanaDashboard", "agents-spanwise-dashboard")
    assert resource["spec"]["configMapRef"] == {"name": made["metadata"]["name"], "key": key}
