"""The gauges about agents and tasks, computed from the windows and task runs at each scrape.

An unknown value has no series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.records.signal import HEADLINES
from collector.records.standing import Standing
from collector.watch.task_runs import TaskRuns
from collector.watch.windows.target import Labels, Target
from collector.watch.windows.targets import Targets

_T = ("service", "agent", "evaluator", "scope")


def agent_gauges() -> Mapping[str, GaugeMetricFamily]:
    """The gauges about agents without samples, by name."""

    def gauge(name: str, text: str, labels: tuple[str, ...] = _T) -> tuple[str, GaugeMetricFamily]:
        return name, GaugeMetricFamily(f"spanwise_{name}", text, labels=labels)

    versions = ("service", "agent", "agent_version")
    sessions = "the newest sessions in the window, each with its latest score"
    since = "while a drop or a fault stands, over those since it began"
    bound = "by the empirical Bernstein inequality; Wilson where every score is 0 or 1"
    return dict(
        (
            *(
                gauge(f"{name}_ratio", f"Mean {name} over {sessions}; {since}.", versions)
                for name in HEADLINES
            ),
            gauge(
                "version_sessions",
                "Sessions in the window of a version of the agent, also those without a score.",
                versions,
            ),
            gauge(
                "version_last_session_timestamp_seconds",
                "Log time of the newest session of a version of the agent.",
                versions,
            ),
            gauge("window_mean_ratio", f"Mean score over {sessions}."),
            gauge("window_lower_bound_ratio", f"Lower 95 % bound on the mean, {bound}."),
            gauge("window_upper_bound_ratio", f"Upper 95 % bound on the mean, {bound}."),
            gauge("window_samples", "Sessions behind the window's mean."),
            gauge(
                "objective_missed_detected",
                "1 from the alarm of the sequential test until the mean is back above the objective.",
            ),
            gauge("slo_objective_ratio", "The evaluator's objective."),
            gauge("last_score_timestamp_seconds", "Log time of the newest score."),
        )
    )


def task_gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    """The gauges about task runs without samples: pass@k, pass^k, and the tasks that are in neither."""

    def gauge(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"spanwise_{name}", text, labels=("service", "agent", "k"))

    mean = "mean over the agent's tasks with at least k runs in their window"
    return (
        gauge(
            "task_pass_at_k_ratio",
            f"Chance that at least one of k runs of a task succeeds, {mean}.",
        ),
        gauge("task_pass_pow_k_ratio", f"Chance that all k runs of a task succeed, {mean}."),
        gauge("tasks_left_out", "Tasks with fewer than k runs: they are in neither mean."),
    )


class AgentGauges(Collector):
    """The windows of all label sets. Registered once; reads the live state."""

    def __init__(
        self,
        targets: Targets,
        now: Callable[[], float],
        changed: Callable[[Labels], float | None],
        caught_up: Callable[[], bool],
    ) -> None:
        """`changed`: since when a change of a headline evaluator's scores stands; None: nothing has changed."""
        self._targets = targets
        self._changed = changed
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
        for standing in self._targets.standings(now, self._changed).values():
            _add_versions(gauges, standing)
        yield from gauges.values()

    def _add(self, gauges: Mapping[str, GaugeMetricFamily], target: Target, now: float) -> None:
        labels = target.labels
        objective = self._targets.objective(labels)
        if objective is not None:
            gauges["slo_objective_ratio"].add_metric(labels, objective)
        if not self._targets.has_window(labels):
            return
        if target.last_score:
            gauges["last_score_timestamp_seconds"].add_metric(labels, target.last_score)
        stats = target.stats(now, self._targets.current_versions(labels))
        if stats is None:
            return
        gauges["window_mean_ratio"].add_metric(labels, stats.bounds.mean)
        gauges["window_lower_bound_ratio"].add_metric(labels, stats.bounds.lower)
        gauges["window_upper_bound_ratio"].add_metric(labels, stats.bounds.upper)
        gauges["window_samples"].add_metric(labels, stats.samples)
        if objective is not None:
            gauges["objective_missed_detected"].add_metric(
                labels, float(target.is_missing(stats.bounds.mean, objective))
            )


def _add_versions(gauges: Mapping[str, GaugeMetricFamily], standing: Standing) -> None:
    for each in standing.versions:
        labels = (standing.service, standing.agent, each.agent_version)
        for name, field in HEADLINES.items():
            mean = getattr(each, field)
            if mean is not None:
                gauges[f"{name}_ratio"].add_metric(labels, mean)
        gauges["version_sessions"].add_metric(labels, each.sessions)
        gauges["version_last_session_timestamp_seconds"].add_metric(labels, each.last_session)


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
