"""What compose.yaml's Grafana is set up with: one Prometheus, the chart's dashboard, points that lead to traces."""

from pathlib import Path
from typing import Any

import yaml

from collector.slo.rules import PAGE

ROOT = Path(__file__).parents[2]
PROVISIONING = ROOT / "compose/grafana/provisioning"


def provisioned(kind: str) -> Any:
    return yaml.safe_load((PROVISIONING / kind / "spanwise.yaml").read_text(encoding="utf-8"))


def test_the_data_source_is_a_prometheus_that_the_dashboards_variable_finds() -> None:
    (source,) = provisioned("datasources")["datasources"]

    assert (source["type"], source["isDefault"]) == ("prometheus", True)
    assert "uid" not in source


def test_a_point_leads_to_its_trace_on_a_page_that_compose_publishes() -> None:
    """Grafana takes `$name` and `${name}` of the file for environment variables: a literal `$` stands there twice."""
    (source,) = provisioned("datasources")["datasources"]
    destinations = source["jsonData"]["exemplarTraceIdDestinations"]

    assert {each["name"] for each in destinations} == {"trace_id"}
    pages = [each["url"].replace("$$", "$") for each in destinations]
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    published = {
        f"http://{port.removesuffix(':4390')}/trace?id=${{__value.raw}}"
        for name in ("spanwise", "demo")
        for port in services[name]["ports"]
        if port.endswith(":4390")
    }
    assert set(pages) == published
    assert pages[0].startswith(PAGE)


def test_the_dashboard_is_read_from_a_folder_and_not_changed_there() -> None:
    (provider,) = provisioned("dashboards")["providers"]

    assert provider["type"] == "file"
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
