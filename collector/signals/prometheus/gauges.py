"""Gauges about agents, computed from the windows and task runs at each scrape: an unknown value has no series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.records.signal import HEADLINES
from collector.signals.prometheus.families import agent_gauges, task_gauges
from collector.signals.prometheus.target import Target
from collector.signals.prometheus.targets import Targets
from collector.signals.prometheus.task_runs import TaskRuns


class AgentGauges(Collector):
    """The windows of all label sets. Registered once; reads the live state."""

    def __init__(
        self, targets: Targets, now: Callable[[], float], caught_up: Callable[[], bool]
    ) -> None:
        self._targets = targets
        self._now = now
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return agent_gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Every family at this moment; no family until the windows from before a restart have been read back."""
        if not self._caught_up():
            return
        now = self._now()
        gauges = agent_gauges()
        for target in self._targets:
            self._add(gauges, target, now)
        yield from gauges.values()

    def _add(self, gauges: Mapping[str, GaugeMetricFamily], target: Target, now: float) -> None:
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


class TaskGauges(Collector):
    """pass@k and pass^k of agents' tasks. Registered once; reads the live state."""

    def __init__(self, runs: TaskRuns, caught_up: Callable[[], bool]) -> None:
        self._runs = runs
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return task_gauges()

    def collect(self) -> Iterator[Metric]:
        """Every family; without samples while runs of before a restart are still being read."""
        pass_at, pass_pow, left_out = gauges = task_gauges()
        for agent, each in self._runs.passing() if self._caught_up() else ():
            for passing in each:
                labels = (*agent, str(passing.k))
                left_out.add_metric(labels, passing.left_out)
                if passing.pass_at_k is not None and passing.pass_pow_k is not None:
                    pass_at.add_metric(labels, passing.pass_at_k)
                    pass_pow.add_metric(labels, passing.pass_pow_k)
        yield from gauges
