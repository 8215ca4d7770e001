"""Every metric family that a process with all roles declares, with its label names."""

from typing import Any

from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.config.tree import AgentWindow
from collector.export.exporter import PrometheusExporter
from collector.service.families import declare_families
from tests.support.faulty_log import FaultyLog


def declared_families() -> dict[str, tuple[str, ...]]:
    """Label names by the name of the series: counters end in _total, of histograms _count stands for all."""
    telemetry = Telemetry(CollectorRegistry())
    declare_families(telemetry)
    PrometheusExporter(
        log=FaultyLog(),
        telemetry=telemetry,
        windows=AgentWindow(),
        objectives=lambda _: 0.9,
        clock=lambda: 0.0,
    )
    suffix = {"counter": "_total", "histogram": "_count", "info": "_info"}
    found: dict[str, tuple[str, ...]] = {}
    collectors: dict[Any, Any] = telemetry.registry._collector_to_names
    for collector in collectors:
        labels: Any = getattr(collector, "_labelnames", None)
        families: list[Any] = list(collector.describe()) if hasattr(collector, "describe") else []
        for family in families:
            name = f"{family.name}{suffix.get(family.type, '')}"
            found[name] = tuple(family._labelnames if labels is None else labels)
    return found
