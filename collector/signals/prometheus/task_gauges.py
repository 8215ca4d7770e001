"""pass@k and pass^k of agents' tasks, computed from the newest runs at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.signals.prometheus.task_runs import TaskRuns

_LABELS = ("service", "agent", "k")


class TaskGauges(Collector):
    """Registered once; reads the live state."""

    def __init__(self, runs: TaskRuns, caught_up: Callable[[], bool]) -> None:
        self._runs = runs
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return _gauges()

    def collect(self) -> Iterator[Metric]:
        """Every family; without samples while runs of before a restart are still being read."""
        pass_at, pass_pow, left_out = gauges = _gauges()
        for agent, each in self._runs.passing() if self._caught_up() else ():
            for found in each:
                labels = (*agent, str(found.k))
                left_out.add_metric(labels, found.left_out)
                if found.pass_at_k is not None and found.pass_pow_k is not None:
                    pass_at.add_metric(labels, found.pass_at_k)
                    pass_pow.add_metric(labels, found.pass_pow_k)
        yield from gauges


def _gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    def gauge(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"spanwise_{name}", text, labels=_LABELS)

    mean = "mean over the agent's tasks with at least k runs in their window"
    return (
        gauge(
            "task_pass_at_k_ratio",
            f"Chance that at least one of k runs of a task succeeds, {mean}.",
        ),
        gauge("task_pass_pow_k_ratio", f"Chance that all k runs of a task succeed, {mean}."),
        gauge("tasks_left_out", "Tasks with fewer than k runs: they are in neither mean."),
    )
