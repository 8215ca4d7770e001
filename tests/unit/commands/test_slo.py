"""`spanwise slo`: what it prints and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command import Run
from tests.support.table import for_each

WITHOUT = [
    *("AgentFault", "AgentScoreDrop", "AgentRunaway", "AgentEvaluatorBlind", "AgentScoresStale"),
    *("JudgeBudgetLow", "AgentTracesIncomplete", "AgentSignalsNotDelivered"),
    *("AgentJudgeByChance", "AgentNoticesDropped"),
]
WITH = [
    *("AgentQualityFastBurn", "AgentQualitySlowBurn", "AgentQualityBudgetDraining"),
    "AgentReliabilityBelowObjective",
]
RECORDED = [
    *(f"agent:quality_fail:ratio_rate{window}" for window in ("5m", "30m", "1h", "6h", "3d")),
    *("agent:quality_valid:increase1h", "agent:quality_valid:increase6h"),
    *("agent:error_budget:ratio", "agent:burn_limit_page:ratio", "agent:burn_limit_slow:ratio"),
]


@pytest.fixture
def printed(run: Run) -> Callable[..., str]:
    """What `spanwise slo ARGUMENTS` prints."""
    return lambda *arguments: run("slo", *arguments).out


def ruled(text: str) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


def budget(text: str) -> str:
    (expr,) = (r["expr"] for r in ruled(text) if r.get("record") == "agent:error_budget:ratio")
    return expr


def test_without_an_objective_it_has_ten_alerts(printed: Callable[..., str]) -> None:
    found = ruled(printed())

    assert sorted(each["alert"] for each in found) == sorted(WITHOUT)


@pytest.mark.parametrize("how", [["--objective", "0.9"], ["--evaluator", "confidence=0.8"]])
def test_with_one_fourteen_and_ten_recording_rules(
    printed: Callable[..., str], how: list[str]
) -> None:
    found = ruled(printed(*how))

    assert sorted(r["alert"] for r in found if "alert" in r) == sorted([*WITHOUT, *WITH])
    assert [r["record"] for r in found if "record" in r] == RECORDED
    assert all(set(r["labels"]) == {"severity"} for r in found if "alert" in r)


def test_the_configurations_objectives_are_taken(
    printed: Callable[..., str], tmp_path: Path
) -> None:
    file = tmp_path / "spanwise.yaml"
    file.write_text(
        "slo: {objective: 0.9}\njudges: {polite: {rubric: polite or not}}\n"
        "evaluators: {confidence: {objective: 0.7}, coherence: {objective: 0.6}}\n"
        "evaluations: {objectives: {Coherence: 0.55, tone: 0.65}}\n"
    )

    found = budget(printed("--config", file, "--evaluator", "confidence=0.75"))

    expected = ("0.75 *", "0.6 *", "0.9 *", "0.55 *", "0.65 *")
    assert [each for each in (*expected, "0.7 *") if each in found] == [*expected]
    assert 'evaluator="x_coherence"' in found
    assert "0.8 *" in budget(printed("--config", file, "--evaluator", "polite=0.8"))


def test_links_lead_to_the_pages_that_are_named(printed: Callable[..., str]) -> None:
    text = printed("--page", "https://spanwise.example.com/")

    assert "page: https://spanwise.example.com/?service=" in text
    assert "runbook: https://spanwise.example.com/help#agentfault" in text
    assert "127.0.0.1" not in text
    wiki = "https://wiki.example.com/agents"
    assert f"runbook: {wiki}#agentfault" in printed("--runbook", wiki)


@for_each(
    "arguments,says",
    [
        (["--objective", "1"], "--objective: expected a number above 0 and below 1, got `1`"),
        (["--objective", "nan"], "--objective: expected a number above 0 and below 1, got `nan`"),
        (["--objective", "90%"], "--objective: expected a number above 0 and below 1, got `90%`"),
        (["--evaluator", "confidence"], "--evaluator: expected NAME=VALUE, got `confidence`"),
        (["--evaluator", "confidence=9"], "--evaluator confidence: expected a number above 0"),
        (["--evaluator", "confidense=0.9"], "there is no evaluator `confidense`"),
        (["--page", "example.com"], "--page: expected an address like http://127.0.0.1:4390"),
        (["--runbook", "wiki"], "--runbook: expected an address like http://127.0.0.1:4390"),
        (["--page", "http://a/{{ b }}"], "--page: expected an address like http://127.0.0.1:4390"),
    ],
)
def test_a_bad_value_is_one_line(run: Run, arguments: list[str], says: str) -> None:
    done = run("slo", *arguments)

    done.assert_one_line(says)
    assert (done.code, done.out) == (2, "")
