"""The rules of the rendered PrometheusRule, run by promtool: what fires is what the program's own rules fire."""

from pathlib import Path

from tests.chart.support import one, render
from tests.support.promtool import Scenario, run, write_case
from tests.unit.slo import always, worse

SOME = [worse.DROPS[0], always.RUNAWAYS[0], always.UNKNOWN[0], always.DELIVERY[0]]


def promtool(folder: Path, text: str, scenarios: list[Scenario]) -> str:
    """What promtool says of the rules that these values render, over the scenarios; empty when all is as they say."""
    groups = one(render(text), "PrometheusRule")["spec"]["groups"]
    done = run("test", "rules", write_case(folder, "chart", groups, scenarios), folder=folder)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_alerts_fire_as_the_scenarios_say(tmp_path: Path) -> None:
    assert not promtool(tmp_path, "prometheusRule: {enabled: true}", SOME)


def test_an_alert_that_is_left_out_is_silent(tmp_path: Path) -> None:
    left_out = "prometheusRule: {enabled: true, disabled: {AgentRunaway: true}}"

    assert "AgentRunaway" in promtool(tmp_path, left_out, [always.RUNAWAYS[0]])
