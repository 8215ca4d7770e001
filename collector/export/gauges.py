"""Gauges computed at each scrape from what is watched. An unknown value has no series."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.records.comparison import EVALUATOR, raised_by, release_faults, version_of
from collector.records.second_opinion import VALUES, SecondOpinion
from collector.records.signal import HEADLINES
from collector.records.standing import AgentLabels, Fault, LookedAt, OpenRunaway
from collector.records.what_changed import counted_by_version
from collector.watch.drift.detectors import DriftDetectors
from collector.watch.faults.faults import Faults
from collector.watch.task_runs import TaskRuns
from collector.watch.windows.target import Labels, Target
from collector.watch.windows.targets import Targets


class GaugeSample(NamedTuple):
    gauge: str
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, eq=False)
class Gauges(Collector):
    """Some families, each as (text, label names) by its name. Registered once; reads the live state.

    They have no samples until the state from before a restart has been read back (`caught_up`).
    """

    families: Mapping[str, tuple[str, tuple[str, ...]]]
    samples: Callable[[], Iterable[GaugeSample]]
    caught_up: Callable[[], bool]

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return self._empty().values()

    def collect(self) -> Iterator[Metric]:
        gauges = self._empty()
        for name, labels, value in self.samples() if self.caught_up() else ():
            gauges[name].add_metric(labels, value)
        yield from gauges.values()

    def _empty(self) -> dict[str, GaugeMetricFamily]:
        return {
            name: GaugeMetricFamily(f"spanwise_{name}", text, labels=labels)
            for name, (text, labels) in self.families.items()
        }


_T = ("service", "agent", "evaluator", "scope")
_VERSION = ("service", "agent", "agent_version")
_TASK = ("service", "agent", "k")
_FAULT = ("service", "agent", "fault", "tool")
_PERIOD = (*_FAULT, "period")
_RANK = ("service", "agent", "evaluator", "agent_version", "baseline")

_SESSIONS = "the newest sessions in the window, each with its latest score"
_BOUND = "by the empirical Bernstein inequality; Wilson where every score is 0 or 1"
_RUNS = "mean over the agent's tasks with at least k runs in their window"

AGENTS = {
    **{
        f"{name}_ratio": (
            f"Mean {name} over {_SESSIONS}; while a drop or a fault lasts, over those since it began.",
            _VERSION,
        )
        for name in HEADLINES
    },
    "version_sessions": (
        "Sessions in the window of a version of the agent, also those without a score.",
        _VERSION,
    ),
    "version_last_session_timestamp_seconds": (
        "Log time of the newest session of a version of the agent.",
        _VERSION,
    ),
    "window_mean_ratio": (f"Mean score over {_SESSIONS}.", _T),
    "window_lower_bound_ratio": (f"Lower 95 % bound on the mean, {_BOUND}.", _T),
    "window_upper_bound_ratio": (f"Upper 95 % bound on the mean, {_BOUND}.", _T),
    "window_samples": ("Sessions behind the window's mean.", _T),
    "objective_missed_detected": (
        "1 from the alarm of the sequential test until the mean is back above the objective.",
        _T,
    ),
    "slo_objective_ratio": ("The evaluator's objective.", _T),
    "last_score_timestamp_seconds": ("Log time of the newest score.", _T),
}

TASKS = {
    "task_pass_at_k_ratio": (
        f"Chance that at least one of k runs of a task succeeds, {_RUNS}.",
        _TASK,
    ),
    "task_pass_pow_k_ratio": (f"Chance that all k runs of a task succeed, {_RUNS}.", _TASK),
    "tasks_left_out": ("Tasks with fewer than k runs: they are in neither mean.", _TASK),
}

DRIFT = {
    "drift_detected": (
        "1 from the alarm that scores rank lower than in the label set's own past until it clears, else 0.",
        _T,
    ),
    "drift_progress_ratio": ("How near such an alarm is, 0 to 1.", _T),
    "drift_strong": (
        "1 while the drop is strong enough to wake somebody, else 0; only of evaluators that page.",
        _T,
    ),
    "drift_mean_rank_ratio": (
        "Mean rank of the scores since the drop began; .5 means no change. While alarmed only.",
        _T,
    ),
    "drift_since_timestamp_seconds": (
        "Log time at which the drop began. While alarmed only.",
        _T,
    ),
    "drift_history_samples": ("Scores in the past that is compared with.", _T),
    "drift_cause": (
        "1 for what explains the agent's drop, else `unknown`; `not_known_yet`: uses looked at. While alarmed only.",
        _FAULT,
    ),
}

OPINIONS = {
    "drop_second_opinion": (
        "What the judge says of the agent's drop: 1 it agrees, 0 it sees no loss, -1 undecided. Once asked only.",
        ("service", "agent"),
    ),
    "second_opinion_mean_ratio": (
        "Mean of the judge's scores before the drop, and since it was asked. From its first look on.",
        ("service", "agent", "evaluator", "period"),
    ),
    "second_opinion_sessions": ("Sessions of that look.", ("service", "agent")),
}

FAULTS = {
    "fault_detected": (
        "1 while a tool, model calls or answers fail more than before; 0 for an hour after.",
        _FAULT,
    ),
    "fault_told_as_tool": (
        "1 while the alert of a tool, which came first, goes on for that of the tool's server; else 0.",
        _FAULT,
    ),
    "fault_since_timestamp_seconds": (
        "Log time at which the first session with the fault was seen. While detected only.",
        _FAULT,
    ),
    "fault_uses": (
        "Sessions that used it, since the fault began and before. While detected only.",
        _PERIOD,
    ),
    "fault_failures": ("Those of them that failed. While detected only.", _PERIOD),
}

COSTS = {
    "cost_per_success_usd": (
        "Cost of the newest sessions in USD, over those of them that passed agent_reliability.",
        ("service", "agent"),
    )
}

RUNAWAYS = {
    "runaway_traces": (
        "Open traces that are running away, by reason.",
        ("service", "agent", "reason"),
    )
}

RANKS = {
    "version_rank_ratio": (
        "Chance that a session of the version scores better than one of the version before, at its last look.",
        _RANK,
    ),
    "version_rank_lower_bound_ratio": ("Lower bound of that chance.", _RANK),
    "version_rank_upper_bound_ratio": ("Upper bound of that chance.", _RANK),
}

RELEASES = {
    "version_faults": (
        "Faults that fail the version beside the one before it, as in its release verdict; 0: none does.",
        (*_VERSION, "baseline"),
    )
}

UNKNOWN = ("unknown", "")  # (fault, tool) of a drop that no fault explains
NEAR = 0.5  # progress towards an alarm that is shown whatever the number of agents


def agents(
    targets: Targets, now: float, changed: Callable[[Labels], float | None]
) -> Iterator[GaugeSample]:
    """Of every window at log time `now`; `changed`: since when a change of a headline's scores is."""
    for target in targets:
        yield from _of_window(targets, target, now)
    for standing in targets.standings(now, changed).values():
        for each in standing.versions:
            labels = (standing.service, standing.agent, each.agent_version)
            for name, field in HEADLINES.items():
                mean = getattr(each, field)
                if mean is not None:
                    yield GaugeSample(f"{name}_ratio", labels, mean)
            yield GaugeSample("version_sessions", labels, each.sessions)
            yield GaugeSample("version_last_session_timestamp_seconds", labels, each.last_session)


def _of_window(targets: Targets, target: Target, now: float) -> Iterator[GaugeSample]:
    labels = target.labels
    objective = targets.objective(labels)
    if objective is not None:
        yield GaugeSample("slo_objective_ratio", labels, objective)
    if not targets.has_window(labels):
        return
    if target.last_score:
        yield GaugeSample("last_score_timestamp_seconds", labels, target.last_score)
    stats = target.window.stats(now, targets.versions.current(labels[:2]))
    if stats is None:
        return
    yield GaugeSample("window_mean_ratio", labels, stats.bounds.mean)
    yield GaugeSample("window_lower_bound_ratio", labels, stats.bounds.lower)
    yield GaugeSample("window_upper_bound_ratio", labels, stats.bounds.upper)
    yield GaugeSample("window_samples", labels, stats.samples)
    if objective is not None:
        is_missing = target.is_missing(stats.bounds.mean, objective)
        yield GaugeSample("objective_missed_detected", labels, is_missing)


def tasks(runs: TaskRuns) -> Iterator[GaugeSample]:
    for agent, each in runs.passing():
        for passing in each:
            labels = (*agent, str(passing.k))
            yield GaugeSample("tasks_left_out", labels, passing.left_out)
            if passing.pass_at_k is not None and passing.pass_pow_k is not None:
                yield GaugeSample("task_pass_at_k_ratio", labels, passing.pass_at_k)
                yield GaugeSample("task_pass_pow_k_ratio", labels, passing.pass_pow_k)


def drift(detectors: DriftDetectors, *, is_detailed: bool) -> Iterator[GaugeSample]:
    """They say "worse than it was" alone, but of the evaluators BOTH (`drift/detector.py`) either direction.

    A label set has `detected` and `progress_ratio` once its history is long enough for a comparison. With too many
    agents for everything (not `is_detailed`) it has `progress_ratio` from NEAR on, and `history_samples` then and while
    its history is too short.
    """
    for watch in detectors:
        labels, samples = watch.labels, watch.past.history_samples
        alarm, progress = watch.alarm, watch.progress
        is_compared = watch.is_compared
        is_shown = is_detailed or progress >= NEAR
        if samples and (is_shown or not is_compared):
            yield GaugeSample("drift_history_samples", labels, samples)
        if is_compared:
            yield GaugeSample("drift_detected", labels, alarm is not None)
        if is_compared and watch.pages:
            yield GaugeSample("drift_strong", labels, watch.is_strong)
        if is_compared and is_shown:
            yield GaugeSample("drift_progress_ratio", labels, progress)
        if alarm is not None:
            yield GaugeSample("drift_mean_rank_ratio", labels, alarm.mean_rank)
            yield GaugeSample("drift_since_timestamp_seconds", labels, alarm.since)
    for agent, cause in detectors.causes().items():
        if isinstance(cause, LookedAt):
            yield GaugeSample("drift_cause", (*agent, "not_known_yet", cause.tool), cause.uses)
        else:
            yield GaugeSample("drift_cause", (*agent, *(cause or UNKNOWN)), 1)


def opinions(shown: Mapping[AgentLabels, SecondOpinion]) -> Iterator[GaugeSample]:
    for agent, each in shown.items():
        yield GaugeSample("drop_second_opinion", agent, VALUES[each.verdict])
        if each.before is not None and each.after is not None:
            for period, mean in (("before", each.before), ("since", each.after)):
                labels = (*agent, each.evaluator, period)
                yield GaugeSample("second_opinion_mean_ratio", labels, mean)
            yield GaugeSample("second_opinion_sessions", agent, each.sessions)


def faults(watched: Faults) -> Iterator[GaugeSample]:
    for agent in watched:
        shown = [*agent.faults()]
        alone = {each.tool for each in shown if each.fault == "tool_failed"}
        for each in shown:
            labels = (*agent.labels, each.fault, each.tool)
            yield from _fault(labels, each)
            if each.fault == "server_failed":
                tool = agent.told_as.get(each.tool)
                yield GaugeSample("fault_told_as_tool", labels, bool(tool))
                if tool and tool not in alone:
                    yield from _fault((*agent.labels, "tool_failed", tool), each)
        for fault, tool in agent.ended():
            yield GaugeSample("fault_detected", (*agent.labels, fault, tool), 0)
            if fault == "server_failed":
                yield GaugeSample("fault_told_as_tool", (*agent.labels, fault, tool), 0)


def _fault(labels: tuple[str, ...], fault: Fault) -> Iterator[GaugeSample]:
    yield GaugeSample("fault_detected", labels, 1)
    yield GaugeSample("fault_since_timestamp_seconds", labels, fault.since)
    yield GaugeSample("fault_uses", (*labels, "before"), fault.uses_before)
    yield GaugeSample("fault_failures", (*labels, "before"), fault.failures_before)
    yield GaugeSample("fault_uses", (*labels, "since"), fault.uses)
    yield GaugeSample("fault_failures", (*labels, "since"), fault.failures)


def runaways(shown: Mapping[AgentLabels, Sequence[OpenRunaway]]) -> Iterator[GaugeSample]:
    for agent, some in shown.items():
        for reason, count in sorted(Counter(each.reason for each in some).items()):
            yield GaugeSample("runaway_traces", (*agent, reason), count)


def costs(per_success: Iterable[tuple[AgentLabels, float]]) -> Iterator[GaugeSample]:
    for agent, usd in per_success:
        yield GaugeSample("cost_per_success_usd", agent, usd)


def ranks(targets: Targets) -> Iterator[GaugeSample]:
    """Of each version that was looked at, of the headlines: for what reads PromQL (Keptn, Harness, Kayenta)."""
    for target in targets:
        service, agent, evaluator, _ = target.labels
        for version, each in target.looks.items() if evaluator in HEADLINES else ():
            if each.baseline is None or not each.looks:
                continue
            labels, look = (service, agent, evaluator, version, each.baseline), each.looks[-1]
            yield GaugeSample("version_rank_ratio", labels, look.rank)
            yield GaugeSample("version_rank_lower_bound_ratio", labels, look.lower)
            yield GaugeSample("version_rank_upper_bound_ratio", labels, look.upper)


def releases(targets: Targets, watched: Faults, now: float) -> Iterator[GaugeSample]:
    shown = watched.by_agent()
    for target in targets:
        agent, evaluator = target.labels[:2], target.labels.evaluator
        if evaluator != EVALUATOR or target.labels.scope != "session" or not target.looks:
            continue
        windows = targets.by_version(agent, evaluator, now)
        sides = {version: version_of(version, each.entries) for version, each in windows.items()}
        counts = [*watched.of(agent).by_version()]
        for version, each in target.looks.items():
            if each.baseline is None or not {version, each.baseline} <= sides.keys():
                continue
            sessions = sides[version].sessions, sides[each.baseline].sessions
            raised = raised_by(shown.get(agent, ()), *sessions)
            found = release_faults(counted_by_version(counts, each.baseline, version), raised)
            yield GaugeSample("version_faults", (*agent, version, each.baseline), len(found))
