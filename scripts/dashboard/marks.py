"""What is marked on every panel: alerts that fire, since when something is worse, and releases. Pure."""

from typing import Any

from scripts.dashboard.panels import SOURCE
from scripts.dashboard.promql import AGENT, chosen
from scripts.dashboard.rows.overview import FIRING

_ABOUT = "{{service}} {{agent}} {{evaluator}}{{sink}}{{budget}}{{reason}}"
BEGAN = chosen(
    "1000 * max by (service, agent, fault, tool) (spanwise_fault_since_timestamp_seconds)\nor\n"
    "1000 * max by (service, agent, evaluator) (spanwise_drift_since_timestamp_seconds)",
    AGENT,
)
"""When what fails or ranks lower now began: milliseconds, which Grafana takes for the mark's time."""
RELEASED = chosen(
    "max by (service, agent, agent_version) (spanwise_version_sessions)\nunless\n"
    "max by (service, agent, agent_version) (spanwise_version_sessions offset 10m)",
    AGENT,
)
"""Versions that had no sessions ten minutes ago."""


def marks() -> list[dict[str, Any]]:
    """Grafana's list of them."""
    return [
        _mark("Alerts", "red", FIRING, "{{alertname}}", _ABOUT),
        _mark(
            "Began",
            "orange",
            BEGAN,
            "{{fault}}{{evaluator}} {{tool}}",
            "{{service}} {{agent}}",
            is_time=True,
        ),
        _mark("Releases", "blue", RELEASED, "{{agent_version}}", "{{service}} {{agent}}"),
    ]


def _mark(
    name: str, color: str, expr: str, title: str, text: str, *, is_time: bool = False
) -> dict[str, Any]:
    """`is_time`: the values are the times of the marks."""
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": expr,
        "step": "60s",
        "tagKeys": "severity",
        "titleFormat": title,
        "textFormat": text,
        "useValueForTime": is_time,
    }
