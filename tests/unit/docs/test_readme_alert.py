"""README's alert, run by promtool: it fires when an agent falls, not for a steady one, wherever its mean lies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

README = (Path(__file__).parents[3] / "README.md").read_text()
RULE = re.findall(r"^```yaml\n(- alert:.*?)^```", README, re.MULTILINE | re.DOTALL)[0]
RELIABILITY = 'service="shop",agent="clerk",evaluator="agent_reliability",scope="session"'


def series(upper: str, mean: str) -> list[dict[str, str]]:
    """Values every ten minutes, in promtool's notation."""
    return [
        {"series": f"spanwise_window_{name}_ratio{{{RELIABILITY}}}", "values": values}
        for name, values in (("upper_bound", upper), ("mean", mean))
    ]


@pytest.mark.parametrize(
    ("upper", "mean", "fires"),
    [
        ("0.97x200", "0.94x200", False),
        ("0.50x200", "0.45x200", False),
        ("0.97x20 0.90x180", "0.94x20 0.86x180", False),
        ("0.97x180 0.80x20", "0.94x180 0.70x20", True),
        ("0.50x180 0.35x20", "0.45x180 0.30x20", True),
        ("_x180 0.30x20", "_x180 0.20x20", False),
    ],
    ids=["good", "poor but steady", "a little less", "fell", "poor and fell", "new"],
)
def test_it_fires_when_an_agent_falls(
    tmp_path: Path, upper: str, mean: str, *, fires: bool
) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        why = "NO PROMTOOL, NOT TESTED: install the Debian package `prometheus`"
        if os.environ.get("SPANWISE_REQUIRE_PROMTOOL") == "1":
            pytest.fail(why)
        pytest.skip(why)
    rules: list[dict[str, str]] = yaml.safe_load(RULE)
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "readme", "rules": rules}]})
    )
    labels = dict(re.findall(r'(\w+)="([^"]*)"', RELIABILITY))
    expected: list[Any] = [{"exp_labels": labels}] if fires else []
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "10m",
        "tests": [
            {
                "interval": "10m",
                "input_series": series(upper, mean),
                "alert_rule_test": [
                    {"eval_time": "1950m", "alertname": rules[0]["alert"], "exp_alerts": expected}
                ],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))

    done = subprocess.run(
        [promtool, "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
