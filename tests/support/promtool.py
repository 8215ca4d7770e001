"""promtool of the Debian package `prometheus`: rules checked and run over series that a test makes up."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from collector.slo.alerts import ALERTS
from collector.slo.rules import RuleGroup
from tests.support.processes import missing, ran

DATA = Path(__file__).parents[1] / "data" / "slo"
Alerts = Mapping[str, Sequence[Mapping[str, str]]]
"""By alert name: the labels of each that fires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Series of one value a minute, in promtool's notation, and what fires when. What is not named is silent."""

    name: str
    series: Mapping[str, str]
    fires: Mapping[str, Alerts] = field(default_factory=dict[str, Alerts])
    """By time. Every alert is looked at at each of them."""
    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """By time and expression: one value."""


def scenarios(*files: str) -> list[Scenario]:
    """Those of files of tests/data/slo. Their keys of `fires` may be several times, and NaNx60 is written out."""
    return [
        Scenario(
            name=each["name"],
            series={name: _written_out(values) for name, values in each["series"].items()},
            fires={
                time: alerts for times, alerts in each["fires"].items() for time in times.split()
            },
            values=each.get("values", {}),
        )
        for file in files
        for each in yaml.safe_load((DATA / f"{file}.yaml").read_text())
    ]


def _written_out(values: str) -> str:
    """promtool has no shorter word for many values that are no number."""
    return re.sub(r"NaNx(\d+)", lambda found: " ".join(["NaN"] * int(found[1])), values)


def promtool() -> str:
    """Its path; the test is skipped, or fails with SPANWISE_REQUIRE_PROMTOOL=1, where it is not installed."""
    return shutil.which("promtool") or missing(
        "PROMTOOL", "NO PROMTOOL, NOT TESTED: install the Debian package `prometheus`"
    )


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """promtool in a folder."""
    return ran(promtool(), *arguments, cwd=folder, timeout=100)


def write_case(
    folder: Path,
    name: str,
    groups: Sequence[RuleGroup],
    scenarios: Sequence[Scenario],
    *,
    every: str = "1m",
) -> str:
    """Files for `promtool test rules`: the rules without their texts, which it would compare too, and the scenarios.

    The rules are evaluated once in `every`, which takes most of the time. Returns the name of the file to run.
    """
    bare = [
        {
            **group,
            "rules": [{k: v for k, v in r.items() if k != "annotations"} for r in group["rules"]],
        }
        for group in groups
    ]
    (folder / f"{name}.rules.yml").write_text(yaml.safe_dump({"groups": bare}))
    case = {
        "rule_files": [f"{name}.rules.yml"],
        "evaluation_interval": every,
        "group_eval_order": [each["name"] for each in groups],
        "tests": [_test(each) for each in scenarios],
    }
    (folder / f"{name}.yml").write_text(yaml.safe_dump(case, sort_keys=False))
    return f"{name}.yml"


def _test(scenario: Scenario) -> dict[str, Any]:
    return {
        "interval": "1m",
        "name": scenario.name,
        "input_series": [{"series": k, "values": v} for k, v in scenario.series.items()],
        "alert_rule_test": [
            {
                "eval_time": time,
                "alertname": alert.name,
                "exp_alerts": [{"exp_labels": dict(each)} for each in fires.get(alert.name, ())],
            }
            for time, fires in scenario.fires.items()
            for alert in ALERTS
        ],
        "promql_expr_test": [
            {"expr": expr, "eval_time": time, "exp_samples": [{"labels": "{}", "value": value}]}
            for time, values in scenario.values.items()
            for expr, value in values.items()
        ],
    }
