"""The metric families about agents.

Counters and histograms begin at 0 with the process (`AgentFamilies`). Gauges are computed from the windows and task
runs at each scrape (`AgentGauges`, `TaskGauges`): an unknown value has no series.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from msgspec.structs import asdict
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.records.signal import HEADLINES, Signal, unix_seconds
from collector.records.standing import Standing
from collector.records.trace_views import TraceUsage
from collector.signals.prometheus.target import Labels, Target
from collector.signals.prometheus.targets import Targets
from collector.signals.prometheus.task_runs import TaskRuns
from collector.telemetry import Telemetry
from evaluators.model import Reason

_F = TypeVar("_F", Counter, Histogram)
_T = ("service", "agent", "evaluator", "scope")
_TENTHS = tuple(round(tenth / 10, 1) for tenth in range(1, 11))
SKIPPED: frozenset[str] = frozenset(get_args(Reason))
"""Why something is skipped: the signal's own closed list."""

_LOW = 0.5
"""Scores below it carry an exemplar, so that a low bucket leads to a trace."""


class AgentFamilies:
    """Counts signals and traces, by label values that the caller has bounded."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._names: dict[Counter | Histogram, tuple[str, ...]] = {}
        self._children: dict[tuple[Counter | Histogram, tuple[str, ...]], Any] = {}

        def counter(name: str, text: str, *labels: str) -> Counter:
            made = telemetry.counter(name, text, *labels)
            self._names[made] = labels
            return made

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            made = telemetry.histogram(name, text, *labels, buckets=buckets)
            self._names[made] = labels
            return made

        self._evaluations = counter(
            "evaluations",
            "Subjects (traces, sessions) evaluated, each once, at its first final outcome.",
            *_T,
            "sample",
            "outcome",
        )
        self._skipped = counter(
            "evaluations_skipped",
            "Evaluations that were due and not made, by why.",
            *_T,
            "reason",
        )
        self._revisions = counter(
            "revisions", "Later final outcomes of subjects that were counted already.", *_T
        )
        self._scores = histogram(
            "score_ratio", "Scores of randomly sampled subjects, 0 to 1.", _TENTHS, *_T
        )
        self._lag = histogram(
            "score_lag_seconds",
            "From the arrival of a subject's newest span to its score, in log time.",
            (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600),
            "evaluator",
            "scope",
        )
        self._durations = histogram(
            "trace_duration_seconds",
            "Duration of traces, from the first start to the last end.",
            (1, 10, 60, 600),
            "service",
            "agent",
        )
        self._cost = counter(
            "trace_cost_usd", "Cost of traces in USD, as their spans say it.", "service", "agent"
        )
        self._tokens = counter(
            "trace_tokens", "Tokens of traces, as their spans say it.", "service", "agent", "type"
        )
        self._task_runs_dropped = counter(
            "task_runs_dropped",
            "Task runs that count for no pass@k, by why.",
            "service",
            "agent",
            "reason",
        )

        self._detector_scores_dropped = counter(
            "detector_scores_dropped",
            "Scores that are compared with no past, or no longer, by why.",
            "reason",
        )
        for reason in ("max_settling", "forgotten"):
            self._detector_scores_dropped.labels(reason)

    def count_first(self, signal: Signal, labels: Labels, time: float, *, histogram: bool) -> None:
        """Count a subject's first final outcome, written at log time `time`; its score if there is a `histogram`.

        Raises:
            Undecodable: the signal's time cannot be read.
        """
        lag = max(0.0, time - unix_seconds(signal.time))
        if signal.outcome == "measured":
            return
        if signal.outcome == "skipped":
            reason = signal.reason if signal.reason in SKIPPED else "unknown"
            self._child(self._skipped, *labels, reason).inc()
            return
        outcome = outcome_of(signal)
        if outcome is not None:
            self._child(self._evaluations, *labels, signal.sample, outcome).inc(
                1, exemplar(signal) if outcome == "fail" else None
            )
        if signal.score is not None:
            if histogram:
                low = outcome == "fail" or signal.score < _LOW
                self._child(self._scores, *labels).observe(
                    signal.score, exemplar(signal) if low else None
                )
            self._child(self._lag, labels.evaluator, labels.scope).observe(lag)

    def count_revision(self, signal: Signal, labels: Labels) -> None:
        """Count a later final outcome."""
        if signal.outcome != "measured":
            self._child(self._revisions, *labels).inc()

    def count_trace(self, service: str, agent: str, trace: TraceUsage) -> None:
        """Count a trace under these labels: its duration, its cost and its tokens by type."""
        self._child(self._durations, service, agent).observe(trace.duration)
        if trace.cost_usd is not None and trace.cost_usd >= 0:
            self._child(self._cost, service, agent).inc(trace.cost_usd)
        for type_, count in asdict(trace.tokens).items():
            if count is not None and count >= 0:
                self._child(self._tokens, service, agent, type_).inc(count)

    def drop_run(self, service: str, agent: str, reason: str) -> None:
        """Count a task run that enters no gauge: no_success, or max_tasks (with its task)."""
        self._child(self._task_runs_dropped, service, agent, reason).inc()

    def forget_scores(self) -> None:
        """Remove the histograms of scores: there are too many agents for those of every evaluator."""
        self._scores.clear()
        self._children.clear()

    def drop_scores(self, reason: str, count: int) -> None:
        """Count scores that the detectors leave out (max_settling) or that were forgotten with their label set."""
        self._detector_scores_dropped.labels(reason).inc(count)

    def forget_agent(self, service: str, agent: str) -> None:
        """Remove every series of the pair: its label values went to another agent."""
        self._forget({"service": service, "agent": agent})

    def forget_evaluator(self, evaluator: str) -> None:
        """Remove every series of the evaluator: its label value went to another evaluator."""
        self._forget({"evaluator": evaluator})

    def _child(self, family: _F, *values: str) -> _F:
        """The child of these label values: looking it up here costs a tenth of `labels`."""
        key = (family, values)
        if key not in self._children:
            self._children[key] = family.labels(*values)
        return self._children[key]

    def _forget(self, labels: dict[str, str]) -> None:
        """Also series that an exporter before this one made: it was started again after a failure."""
        for family, names in self._names.items():
            if labels.keys() <= set(names):
                family.remove_by_labels(labels)
        self._children.clear()


def agent_gauges() -> Mapping[str, GaugeMetricFamily]:
    """The gauges about agents without samples, by name."""

    def gauge(name: str, text: str, labels: tuple[str, ...] = _T) -> tuple[str, GaugeMetricFamily]:
        return name, GaugeMetricFamily(f"spanwise_{name}", text, labels=labels)

    versions = ("service", "agent", "agent_version")
    sessions = "the newest sessions in the window, each with its latest score"
    bound = "by the empirical Bernstein inequality; Wilson where every score is 0 or 1"
    return dict(
        (
            *(
                gauge(f"{name}_ratio", f"Mean {name} over {sessions}.", versions)
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


def outcome_of(signal: Signal) -> str | None:
    """The value of label `outcome`: pass, fail, error or not_applicable; None: a score without pass or fail."""
    if signal.outcome == "failed":
        return "error"
    if signal.outcome == "not_applicable":
        return "not_applicable"
    if signal.success is not None:
        return "pass" if signal.success else "fail"
    if signal.threshold is None:
        return None
    return "pass" if (signal.score or 0.0) >= signal.threshold else "fail"


def exemplar(signal: Signal) -> dict[str, str] | None:
    """The ids of the scored span; None for a session. An exemplar has at most 128 characters: only fixed lengths."""
    if signal.trace_id is None or len(signal.trace_id) != 32:
        return None
    span = signal.span_id
    return {
        "trace_id": signal.trace_id,
        **({"span_id": span} if span is not None and len(span) == 16 else {}),
    }


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
        for standing in self._targets.standings(now).values():
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
