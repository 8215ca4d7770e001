"""Gauges about agents, computed from the windows at each scrape: what is unknown has no series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.signals.prometheus.target import HEADLINES, Target
from collector.signals.prometheus.targets import Targets

_T = ("service", "agent", "evaluator", "scope")
_BOUND = "by the empirical Bernstein inequality; Wilson where every score is 0 or 1"


class AgentGauges(Collector):
    """Registered once; reads the live state."""

    def __init__(
        self, targets: Targets, now: Callable[[], float], caught_up: Callable[[], bool]
    ) -> None:
        self._targets = targets
        self._now = now
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return self._gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Every family at this moment.

        None while the windows of before a restart are still being read back: no number is better than an old one.
        """
        if not self._caught_up():
            return
        now = self._now()
        gauges = self._gauges()
        for target in self._targets:
            self._add(gauges, target, now)
        yield from gauges.values()

    def _add(self, gauges: dict[str, GaugeMetricFamily], target: Target, now: float) -> None:
        labels = target.labels
        objective = self._targets.objective(labels)
        if objective is not None:
            gauges["slo_objective_ratio"].add_metric(labels, objective)
        if target.last_score:
            gauges["last_score_timestamp_seconds"].add_metric(labels, target.last_score)
        stats = target.stats(now)
        if stats is None:
            return
        gauges["window_mean_ratio"].add_metric(labels, stats.bounds.mean)
        gauges["window_lower_bound_ratio"].add_metric(labels, stats.bounds.lower)
        gauges["window_upper_bound_ratio"].add_metric(labels, stats.bounds.upper)
        gauges["window_samples"].add_metric(labels, stats.samples)
        if objective is not None:
            gauges["drift_detected"].add_metric(
                labels, float(target.is_drifting(stats.bounds.mean, objective))
            )
        if labels.evaluator in HEADLINES:
            for version, mean in sorted(target.versions(now).items()):
                gauges[f"{labels.evaluator}_ratio"].add_metric(
                    (labels.service, labels.agent, version), mean
                )

    def _gauges(self) -> dict[str, GaugeMetricFamily]:
        def gauge(name: str, text: str, labels: tuple[str, ...] = _T) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"spanwise_{name}", text, labels=labels)

        versions = ("service", "agent", "agent_version")
        sessions = "the newest sessions in the window, each with its latest score"
        return {
            "agent_reliability_ratio": gauge(
                "agent_reliability_ratio", f"Mean agent_reliability over {sessions}.", versions
            ),
            "agent_consistency_ratio": gauge(
                "agent_consistency_ratio", f"Mean agent_consistency over {sessions}.", versions
            ),
            "window_mean_ratio": gauge("window_mean_ratio", f"Mean score over {sessions}."),
            "window_lower_bound_ratio": gauge(
                "window_lower_bound_ratio", f"Lower 95 % bound on the mean, {_BOUND}."
            ),
            "window_upper_bound_ratio": gauge(
                "window_upper_bound_ratio", f"Upper 95 % bound on the mean, {_BOUND}."
            ),
            "window_samples": gauge("window_samples", "Sessions behind the window's mean."),
            "drift_detected": gauge(
                "drift_detected",
                "1 from the alarm of the sequential test until the mean is back above the objective.",
            ),
            "slo_objective_ratio": gauge("slo_objective_ratio", "The evaluator's objective."),
            "last_score_timestamp_seconds": gauge(
                "last_score_timestamp_seconds", "Log time of the newest score."
            ),
        }
