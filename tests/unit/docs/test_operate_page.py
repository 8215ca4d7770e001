"""docs/operate.md lists every metric that a process exports."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.config.tree import AgentWindow
from collector.export.exporter import PrometheusExporter
from collector.service.families import declare_families
from tests.support.faulty_log import FaultyLog

PAGE = (Path(__file__).parents[3] / "docs" / "operate.md").read_text()
SUFFIX = {"counter": "_total", "info": "_info"}


def families() -> set[str]:
    registry = CollectorRegistry()
    telemetry = Telemetry(registry)
    declare_families(telemetry)
    exporter = PrometheusExporter(
        log=FaultyLog(),
        telemetry=telemetry,
        windows=AgentWindow(),
        objectives=lambda _: 0.9,
        clock=lambda: 0.0,
    )
    exporter._caught_up = exporter._fault_reader.caught_up = True
    return {f"{each.name}{SUFFIX.get(each.type, '')}" for each in registry.collect()}


def test_every_metric_is_explained_and_no_other() -> None:
    assert set(re.findall(r"spanwise_[a-z_]+", PAGE)) == families()


def test_every_test_that_the_page_names_is_there() -> None:
    tests = Path(__file__).parents[2]
    named = set(re.findall(r"`((?:\w+/)+test_\w+\.py)`", PAGE))

    assert len(named) > 8
    assert {each for each in named if not (tests / each).is_file()} == set()
