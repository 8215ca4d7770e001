"""What Prometheus itself thinks of /metrics: promtool finds nothing to say, a real server has the series."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from collector.slo.alerts import ALERTS, Alert
from collector.slo.rules import rules
from collector.slo.words import RuleWords
from tests.support.agents import Turn, request, spans
from tests.support.declared_families import declared_families
from tests.support.processes import ran
from tests.support.prometheus import Prometheus, need_prometheus
from tests.support.promtool import fired
from tests.support.sender import send
from tests.support.service import Service

Labels = Mapping[str, str]
WRONG: Mapping[str, Sequence[tuple[Labels, str]]] = {
    "evaluations_total": [
        ({"outcome": "fail"}, "0+8x100"),
        ({"outcome": "pass"}, "0+2x100"),
        ({"outcome": "error"}, "0+90x100"),
    ],
    "slo_objective_ratio": [({}, "0.9x100")],
    "window_upper_bound_ratio": [({}, "0.3x100")],
    "window_samples": [({}, "40x100")],
    "drift_detected": [({}, "1x100")],
    "fault_detected": [({"fault": "tool_slow"}, "1x100")],
    "runaway_traces": [({"reason": "model_calls"}, "1x100")],
    "last_score_timestamp_seconds": [({}, "0x100")],
    "traces_closed_total": [({"reason": "memory"}, "0+1x100")],
    "log_lag_seconds": [({}, "900x100")],
    "judge_budget_remaining_usd": [({}, "0.5x100")],
    "judge_budget_limit_usd": [({}, "10x100")],
    "outbox_oldest_timestamp_seconds": [({}, "1x100")],
    "signals_total": [({"result": "lost"}, "0+1x100")],
    "agreement_rank_upper_bound_ratio": [({}, "0.5x100")],
    "notices_total": [({"result": "dropped"}, "0+1x100")],
}
"""By family: labels of closed sets that are changed, and values."""
_ABOUT = {
    "AgentQualityFastBurn": "evaluations_total",
    "AgentQualitySlowBurn": "evaluations_total",
    "AgentQualityBudgetDraining": "evaluations_total",
    "AgentReliabilityBelowObjective": "window_samples",
    "AgentScoreDrop": "drift_detected",
    "AgentFault": "fault_detected",
    "AgentRunaway": "runaway_traces",
    "AgentEvaluatorBlind": "evaluations_total",
    "AgentScoresStale": "last_score_timestamp_seconds",
    "JudgeBudgetLow": "judge_budget_limit_usd",
    "AgentTracesIncomplete": "traces_closed_total",
    "AgentSignalsNotDelivered": "outbox_oldest_timestamp_seconds",
    "AgentJudgeByChance": "agreement_rank_upper_bound_ratio",
    "AgentNoticesDropped": "notices_total",
}


class Scrape:
    """Label sets by family, as a process shows them; where it shows none, those that it declares."""

    def __init__(self, exposition: str) -> None:
        self._samples = [
            (sample.name.removeprefix("spanwise_"), sample.labels, sample.value)
            for family in text_string_to_metric_families(exposition)
            for sample in family.samples
            if not math.isnan(sample.value)
        ]
        self.shown = {name for name, _, _ in self._samples}
        self._declared = {
            name.removeprefix("spanwise_"): labels for name, labels in declared_families().items()
        }

    def label_sets(self, family: str) -> list[Labels]:
        """Real ones, else one with a made-up value for each label that the family declares."""
        if family in self.shown:
            return [labels for name, labels, _ in self._samples if name == family]
        return [dict.fromkeys(self._declared[family], "declared")]

    def as_it_is(self) -> dict[str, str]:
        """Every series that stands in the scrape, at its value."""
        return {_series(name, labels): f"{value:f}x100" for name, labels, value in self._samples}

    def spoiled(self, *, without: str = "") -> dict[str, str]:
        """With the labels that two scraped replicas get; `without` a family."""
        return {
            _series(family, {**labels, **changed, "instance": pod, "pod": pod}): values
            for family, changes in WRONG.items()
            if family != without
            for labels in self.label_sets(family)
            for changed, values in changes
            for pod in ("a", "b")
        }

    def expected(self) -> dict[str, set[frozenset[tuple[str, str]]]]:
        """The labels of every alert, when everything goes wrong."""
        found = {
            alert.name: set(self._alerts(alert, self.label_sets(_ABOUT[alert.name])))
            for alert in ALERTS
        }
        (below,) = (alert for alert in ALERTS if alert.name == "AgentReliabilityBelowObjective")
        found[below.name] &= set(self._alerts(below, self.label_sets("slo_objective_ratio")))
        (unsent,) = (alert for alert in ALERTS if alert.name == "AgentSignalsNotDelivered")
        found[unsent.name] |= set(self._alerts(unsent, self.label_sets("signals_total")))
        found["AgentScoresStale"].add(frozenset({("severity", "page")}))
        return found

    def _alerts(
        self, alert: Alert, label_sets: Sequence[Labels]
    ) -> Iterator[frozenset[tuple[str, str]]]:
        changed = WRONG[_ABOUT[alert.name]][0][0]
        for labels in label_sets:
            carried = {name: {**labels, **changed}[name] for name in alert.labels}
            by_scope = "page" if carried.get("scope") == "session" else "ticket"
            severity = alert.severity(RuleWords(alert.labels))
            carried["severity"] = by_scope if "{{" in severity else severity
            yield frozenset(carried.items())


def _series(family: str, labels: Labels) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"spanwise_{family}{{{inside}}}"


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
