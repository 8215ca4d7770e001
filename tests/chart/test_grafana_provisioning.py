"""What compose.yaml's Grafana is set up with: one Prometheus, the chart's dashboard, points that lead to traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from collector.slo.rules import PAGE

PROVISIONING = Path(__file__).parents[2] / "deploy/grafana/provisioning"


def provisioned(kind: str) -> Any:
    return yaml.safe_load((PROVISIONING / kind / "spanwise.yaml").read_text(encoding="utf-8"))


def test_the_data_source_is_a_prometheus_that_the_dashboards_variable_finds() -> None:
    (source,) = provisioned("datasources")["datasources"]

    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    assert "uid" not in source


def test_a_point_leads_to_its_trace_on_the_page() -> None:
    """Grafana takes `$name` and `${name}` of the file for environment variables: a literal `$` stands there twice."""
    (source,) = provisioned("datasources")["datasources"]
    (destination,) = source["jsonData"]["exemplarTraceIdDestinations"]

    assert destination["name"] == "trace_id"
    assert destination["url"].replace("$$", "$") == f"{PAGE}/trace?id=${{__value.raw}}"


def test_the_dashboard_is_read_from_a_folder_and_not_changed_there() -> None:
    (provider,) = provisioned("dashboards")["providers"]

    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
