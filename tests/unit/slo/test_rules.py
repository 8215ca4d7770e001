"""The rules under promtool: every alert is seen firing, and seen silent where nothing is wrong."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from collector.slo.alerts import ALERTS, Alert
from collector.slo.rules import RuleGroup, rules
from tests.support.promtool import Scenario, run, write_case
from tests.support.table import for_each
from tests.unit.slo import always, objectives, worse

OBJECTIVES: Mapping[str, float] = {"tool_correctness": 0.95, "work_baseline": 0.3}
PLAIN = rules()
FULL = rules(0.9, OBJECTIVES)
CASES: Mapping[str, tuple[Sequence[RuleGroup], Sequence[Scenario]]] = {
    "plain": (PLAIN, always.SCENARIOS),
    "with-objectives": (FULL, objectives.SCENARIOS),
    "by-name-alone": (
        rules(None, OBJECTIVES),
        [*worse.FAULTS, *worse.DROPS[:3], *always.RUNAWAYS],
    ),
}


@pytest.mark.process
def test_every_alert_fires_and_is_silent_as_the_scenarios_say(tmp_path: Path) -> None:
    files = [
        write_case(tmp_path, name, *case, every="2m" if case[0] is FULL else "1m")
        for name, case in CASES.items()
    ]

    done = run("test", "rules", *files, folder=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_for_exported_objectives_differ_only_in_where_the_objective_comes_from() -> None:
    exported, common = (
        {
            rule.get("alert", rule.get("record", "")): rule
            for group in groups
            for rule in group["rules"]
        }
        for groups in (rules(exported=True), rules(0.9))
    )

    assert exported.keys() == common.keys()
    assert {name for name, rule in exported.items() if rule != common[name]} == {
        "agent:error_budget:ratio"
    }


@for_each("alert", ALERTS)
def test_the_scenarios_show_it_firing_and_silent(alert: Alert) -> None:
    moments = [
        fires.get(alert.name)
        for _, scenarios in CASES.values()
        for each in scenarios
        for fires in each.fires.values()
    ]
    fired = [labels for each in moments for labels in each or ()]

    assert fired
    assert not all(moments)
    assert {frozenset(each) for each in fired} <= {
        frozenset({*alert.labels, "severity"}),
        frozenset({"severity"}),
        frozenset({*alert.labels, "severity"} - {"tool"}),  # a fault of the agent has none
    }
