"""What Prometheus itself thinks of /metrics: promtool finds nothing to say, a real server has the series."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.slo.rules import rules
from tests.support.agents import Turn, request, spans
from tests.support.processes import ran
from tests.support.prometheus import Prometheus, need_prometheus
from tests.support.promtool import fired
from tests.support.sender import send
from tests.support.service import Service
from tests.support.spoiled import Scrape

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SHOWN = {
    *("evaluations_total", "slo_objective_ratio", "window_upper_bound_ratio", "window_samples"),
    *("last_score_timestamp_seconds", "traces_closed_total", "log_lag_seconds", "signals_total"),
}
"""Families that the rules read and that a short run has: no name of theirs is made up."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """After a good and a bad session."""
    need_prometheus()
    folder = tmp_path_factory.mktemp("scraped")
    with Service(folder / "data", "windows.trace.root_grace=300ms", "slo.objective=0.9") as running:
        for session in ("good", "bad"):
            for number in range(3):
                turn = Turn(
                    service="shop-bot", session=session, number=number, fails=session == "bad"
                )
                send(running.grpc, request("shop-bot", spans(turn)))
        running.wait_for("scored", lambda: len(running.scored_traces()) == 6)
        running.wait_for("the gauge", lambda: running.total("spanwise_agent_reliability_ratio"))
        yield running


def test_promtool_has_nothing_to_say(service: Service) -> None:
    checked = ran("promtool", "check", "metrics", input=service.text("/metrics"))

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_every_alert_fires_over_the_series_of_the_process(service: Service, tmp_path: Path) -> None:
    """Labels of a real scrape, values of a bad day: what the rules read is what the process calls it."""
    service.wait_for("the lag", lambda: "spanwise_log_lag_seconds{" in service.text("/metrics"))
    scrape = Scrape(service.text("/metrics"))

    found = fired(tmp_path, rules(0.9), scrape.spoiled(), "100m")
    unscored = fired(tmp_path, rules(0.9), scrape.spoiled(without="evaluations_total"), "100m")
    found["AgentScoresStale"] = unscored["AgentScoresStale"]

    assert scrape.shown >= SHOWN
    assert {
        name: {frozenset(each.items()) for each in alerts} for name, alerts in found.items()
    } == scrape.expected()


def test_no_alert_fires_over_the_values_of_the_process(service: Service, tmp_path: Path) -> None:
    assert fired(tmp_path, rules(0.9), Scrape(service.text("/metrics")).as_it_is(), "100m") == {}


def test_openmetrics_has_exemplars_that_name_a_trace(service: Service) -> None:
    wish = {"accept": "application/openmetrics-text; version=1.0.0"}
    said = service.text("/metrics", wish)

    assert said.endswith("# EOF\n")
    exemplars = [line for line in said.splitlines() if " # {" in line]
    assert exemplars
    assert all("trace_id=" in line.split(" # ", 1)[1] for line in exemplars)


def test_no_label_names_a_trace_a_session_or_a_user(service: Service) -> None:
    forbidden = ("trace_id=", "session_id=", "user_id=", "session=", "prompt=")

    assert [
        line for line in service.text("/metrics").splitlines() if any(f in line for f in forbidden)
    ] == []


def test_a_real_prometheus_scrapes_the_series(service: Service, tmp_path: Path) -> None:
    reliability = "spanwise_agent_reliability_ratio"
    with Prometheus(tmp_path, service.admin) as prometheus:
        found = prometheus.wait_for("the series", lambda: prometheus.query(reliability), 90)
        failed = prometheus.query('spanwise_evaluations_total{outcome="fail"} > 0')
        up = prometheus.query('up{job="spanwise"}')

    assert [labels["service"] for labels, _ in found] == ["shop-bot"]
    assert 0 <= found[0][1] < 1
    assert "tool_correctness" in {labels["evaluator"] for labels, _ in failed}
    assert [value for _, value in up] == [1]
