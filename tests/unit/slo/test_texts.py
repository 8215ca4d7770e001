"""What an alert says to a person: what, since when, by how much, where to look. Rendered by promtool."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from collector.api.session_filter import filter_of
from collector.slo.alerts import ALERTS, Alert
from collector.slo.rules import HELP, rules
from tests.support.promtool import DATA, run
from tests.support.table import for_each

pytestmark = pytest.mark.process


ROOT = Path(__file__).parents[3]
PLACE = {"service": 'Müller & "Söhne"/a+b', "agent": "c d{}"}
SERIES: dict[str, str] = yaml.safe_load((DATA / "everything_wrong.yaml").read_text())
SAYS: dict[str, list[str]] = yaml.safe_load((DATA / "texts.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The texts of every alert, as promtool prints what it did not expect."""
    folder = tmp_path_factory.mktemp("texts")
    (folder / "rules.yml").write_text(
        yaml.safe_dump({"groups": rules(0.9, page="https://spanwise.example.com/of/us")})
    )
    case: dict[str, Any] = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "group_eval_order": ["spanwise-objectives", "spanwise"],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in SERIES.items()
                ],
                "alert_rule_test": [
                    {"eval_time": "100m", "alertname": each.name, "exp_alerts": []}
                    for each in ALERTS
                ],
            }
        ],
    }
    (folder / "case.yml").write_text(yaml.safe_dump(case))
    printed = run("test", "rules", "case.yml", folder=folder).stderr
    return dict(re.findall(r"alertname: (\w+), time(.*?)(?=alertname: |\Z)", printed, re.DOTALL))


@pytest.mark.parametrize("name", [each.name for each in ALERTS])
def test_every_text_is_whole(said: dict[str, str], name: str) -> None:
    text = said[name]

    assert "Annotations:{" in text
    for broken in ("error expanding", "no value", "unknown", "%!", "{{", "[[", "NaN", "No judge"):
        assert broken not in text


@for_each(("name", "parts"), SAYS.items())
def test_it_says_since_when_and_by_how_much(
    said: dict[str, str], name: str, parts: list[str]
) -> None:
    assert [part for part in parts if part not in said[name]] == []


FAILED_SINCE = {
    "AgentQualityFastBurn": 3_600,
    "AgentQualitySlowBurn": 21_600,
    "AgentQualityBudgetDraining": 259_200,
}
"""Alerts that lead to the sessions that failed, and from how many seconds back."""
PAGES = {
    "AgentJudgeByChance": "agreement",
    **dict.fromkeys((*FAILED_SINCE, "AgentReliabilityBelowObjective"), "sessions"),
}


@pytest.mark.parametrize(
    "name", [each.name for each in ALERTS if {"service", "agent"} <= set(each.labels)]
)
def test_it_links_to_the_agent_or_to_those_of_its_sessions_that_it_is_about(
    said: dict[str, str], name: str
) -> None:
    links: list[str] = re.findall(r'page="([^"]*)"', said[name])

    assert links
    for link in links:
        address = urlsplit(link)
        given = {key: value for key, (value,) in parse_qs(address.query).items()}
        assert link.startswith("https://spanwise.example.com/of/us/")
        assert PLACE.items() <= given.items()
        assert address.path == "/of/us/" + PAGES.get(name, "")
        if PAGES.get(name) == "sessions":
            asked, wrong = filter_of(given, now=1e6, running_away=frozenset)
            back = FAILED_SINCE.get(name)
            assert wrong == []
            assert (asked.service, asked.agent) == (PLACE["service"], PLACE["agent"])
            assert asked.failed == (None if back is None else "agent_reliability")
            assert asked.since == (None if back is None else (1e6 - back) * 1e6)


@pytest.mark.parametrize("alert", ALERTS, ids=[each.name for each in ALERTS])
def test_its_runbook_stands_in_the_docs(said: dict[str, str], alert: Alert) -> None:
    (runbook,) = set(re.findall(r'runbook="([^"]*)"', said[alert.name]))

    page, _, section = runbook.partition("#")
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs" / "alerting.md").read_text(), re.MULTILINE)
    assert page == f"https://spanwise.example.com/of/us{HELP}"
    assert section in {each.lower() for each in headings}
