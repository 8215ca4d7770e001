"""The dashboard as Grafana imports it: classic JSON schema, for Grafana 10 and later. Pure."""

from typing import Any

from collector.slo.rules import PAGE
from scripts.dashboard.layout import placed
from scripts.dashboard.marks import marks
from scripts.dashboard.rows.agent import AGENT_ROW
from scripts.dashboard.rows.delivery import DELIVERY
from scripts.dashboard.rows.judge import JUDGE
from scripts.dashboard.rows.overview import OVERVIEW
from scripts.dashboard.rows.processes import PROCESSES
from scripts.dashboard.rows.traces import TRACES
from scripts.dashboard.variables import asked, page, source

UID = "spanwise-agents"
"""Stays: links to the dashboard, and what replaces it at the next upgrade, go by it."""
SCHEMA = 38
"""Grafana 10.0's; a newer one migrates it by itself, an older one shows what it knows."""
ROWS = (OVERVIEW, JUDGE, TRACES, DELIVERY, PROCESSES, AGENT_ROW)
"""The rows about the service are folded up, so that the agents follow the overview."""


def dashboard() -> dict[str, Any]:
    """The whole dashboard. The same at every call."""
    return {
        "uid": UID,
        "title": "Spanwise: agents",
        "description": "How reliable agents are, whether they are worse than their own past, and what is not known.",
        "tags": ["spanwise", "agents"],
        "editable": False,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "templating": {
            "list": [
                source(),
                asked("job", "label_values(spanwise_build_info, job)"),
                asked(
                    "service",
                    'label_values(spanwise_trace_duration_seconds_count{job=~"$job"}, service)',
                ),
                asked(
                    "agent",
                    "label_values(spanwise_trace_duration_seconds_count"
                    '{job=~"$job",service=~"$service"}, agent)',
                ),
                page(PAGE),
            ]
        },
        "annotations": {"list": marks()},
        "links": [
            {
                "type": "link",
                "title": "Page",
                "tooltip": "Sessions, newest first",
                "url": "${page}/",
                "icon": "external link",
                "targetBlank": True,
                "asDropdown": False,
                "includeVars": False,
                "keepTime": False,
                "tags": [],
            }
        ],
        "panels": placed(ROWS),
    }
