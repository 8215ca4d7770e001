"""The metric families about agents that count: counters and histograms, which begin at 0 with the process."""

from typing import Any, TypeVar

from msgspec.structs import asdict

from collector.base.telemetry import Buckets, Tally, Telemetry
from collector.export.label_counts import SKIPPED, exemplar, outcome_of
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.trace_views import TraceUsage
from collector.watch.windows.target import Labels

_F = TypeVar("_F", Tally, Buckets)
_T = "service agent evaluator scope"
_LOW = 0.5  # scores below it carry an exemplar, so that a low bucket leads to a trace
_TENTHS = tuple(round(tenth / 10, 1) for tenth in range(1, 11))


class AgentFamilies:
    """Counts signals and traces, by label values that the caller has bounded."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._names: dict[Tally | Buckets, list[str]] = {}
        self._children: dict[tuple[Tally | Buckets, tuple[str, ...]], Any] = {}

        def counter(name: str, text: str, labels: str) -> Tally:
            made = telemetry.tally(name, text, labels)
            self._names[made] = labels.split()
            return made

        def histogram(name: str, text: str, buckets: tuple[float, ...], labels: str) -> Buckets:
            made = telemetry.buckets(name, text, labels, buckets=buckets)
            self._names[made] = labels.split()
            return made

        self._evaluations = counter(
            "evaluations",
            "Subjects (traces, sessions) evaluated, each once, at its first final outcome.",
            f"{_T} sample outcome",
        )
        self._skipped = counter(
            "evaluations_skipped",
            "Evaluations that were due and not made, by reason.",
            f"{_T} reason",
        )
        self._revisions = counter(
            "revisions", "Later final outcomes of subjects that were counted already.", _T
        )
        self._scores = histogram(
            "score_ratio", "Scores of randomly sampled subjects, 0 to 1.", _TENTHS, _T
        )
        self._lag = histogram(
            "score_lag_seconds",
            "From the arrival of a subject's newest span to its score, in log time.",
            (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600),
            "evaluator scope",
        )
        self._durations = histogram(
            "trace_duration_seconds",
            "Duration of traces, from the first start to the last end.",
            (1, 10, 60, 600),
            "service agent",
        )
        self._cost = counter(
            "trace_cost_usd", "Cost of traces in USD, as their spans say it.", "service agent"
        )
        self._tokens = counter(
            "trace_tokens", "Tokens of traces, as their spans say it.", "service agent type"
        )
        self._cancelled = counter(
            "traces_cancelled", "Traces of runs that somebody stopped.", "service agent"
        )
        self._task_runs_dropped = counter(
            "task_runs_dropped",
            "Task runs that count for no pass@k, by reason.",
            "service agent reason",
        )

        self.runaways_dropped = telemetry.counter(
            "runaway_traces_dropped",
            "Open traces that ran away and are forgotten before their final outcome, by reason.",
            "reason",
        )
        """By reason: `max_traces`, `max_age`."""
        self._detector_scores_dropped = counter(
            "detector_scores_dropped",
            "Scores that are compared with no past, or no longer, by reason.",
            "reason",
        )
        for reason in ("max_settling", "forgotten"):
            self._detector_scores_dropped.labels(reason)

    def count_first(
        self,
        labels: Labels,
        subject: SubjectHeader,
        signal: SignalHeader,
        lag: float,
        *,
        histogram: bool,
    ) -> None:
        """Count a subject's first final outcome, `lag` seconds after its newest span; its score for a `histogram`."""
        if signal.outcome == "measured":
            return
        if signal.outcome == "skipped":
            reason = signal.reason if signal.reason in SKIPPED else "unknown"
            self._child(self._skipped, *labels, reason).inc()
            return
        outcome = outcome_of(signal)
        if outcome is not None:
            sample = "more" if signal.sample == "more" else "base"
            child = self._child(self._evaluations, *labels, sample, outcome)
            child.inc(1, exemplar(subject) if outcome == "fail" else None)
        score = signal.score
        if score is None:
            return
        if histogram:
            low = outcome == "fail" or score < _LOW
            self._child(self._scores, *labels).observe(score, exemplar(subject) if low else None)
        self._child(self._lag, labels.evaluator, labels.scope).observe(lag)

    def count_revision(self, labels: Labels, signal: SignalHeader) -> None:
        if signal.outcome != "measured":
            self._child(self._revisions, *labels).inc()

    def count_trace(self, service: str, agent: str, trace: TraceUsage) -> None:
        """Count a trace under these labels: its duration, its cost and its tokens by type."""
        self._child(self._durations, service, agent).observe(trace.duration)
        if trace.cost_usd is not None and trace.cost_usd >= 0:
            self._child(self._cost, service, agent).inc(trace.cost_usd)
        cancelled = self._child(self._cancelled, service, agent)
        if trace.status == "cancelled":
            cancelled.inc()
        for type_, count in asdict(trace.tokens).items():
            if count is not None and count >= 0:
                self._child(self._tokens, service, agent, type_).inc(count)

    def drop_run(self, service: str, agent: str, reason: str) -> None:
        self._child(self._task_runs_dropped, service, agent, reason).inc()

    def forget_scores(self) -> None:
        """Remove the histograms of scores: there are too many agents for those of every evaluator."""
        self._scores.clear()
        self._children.clear()

    def drop_scores(self, reason: str, count: int) -> None:
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
