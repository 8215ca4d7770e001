"""The mixin, evaluated as jsonnet users do: it gives the alerts, the rules and the dashboard of every other way."""

import json
from pathlib import Path
from typing import Any

import _jsonnet

from collector.slo.alerts import ALERTS
from collector.slo.rules import PAGE, rules
from scripts.dashboard import dashboard
from tests.support.promtool import run

MIXIN = Path(__file__).parents[2] / "helm" / "mixin"
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

    assert PAGE not in json.dumps(made)
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
