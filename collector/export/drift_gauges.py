"""The gauges of the comparisons with the past: `spanwise_drift_*`.

They say "worse than it was" alone. Of the evaluators BOTH (`detector.py`) the other direction is as bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.watch.drift.detectors import DriftDetectors

UNKNOWN = ("unknown", "")
"""(fault, tool) of a drop that no fault explains."""
NEAR = 0.5
"""Progress towards an alarm that is shown whatever the number of agents."""


def drift_gauges() -> Mapping[str, GaugeMetricFamily]:
    """The gauges without samples, by name."""
    texts = {
        "detected": "1 from the alarm that scores rank lower than in the label set's own past until it clears, else 0.",
        "progress_ratio": "How near such an alarm is, 0 to 1.",
        "strong": "1 while the drop is strong enough to wake somebody, else 0; only of evaluators that page.",
        "mean_rank_ratio": "Mean rank of the scores since the drop began; .5 means no change. While alarmed only.",
        "since_timestamp_seconds": "Log time at which the drop began. While alarmed only.",
        "history_samples": "Scores in the past that is compared with.",
    }
    labels = ("service", "agent", "evaluator", "scope")
    gauges = {
        name: GaugeMetricFamily(f"spanwise_drift_{name}", text, labels=labels)
        for name, text in texts.items()
    }
    gauges["cause"] = GaugeMetricFamily(
        "spanwise_drift_cause",
        "1 for the fault that explains the agent's drop, `unknown` where none does. While alarmed only.",
        labels=("service", "agent", "fault", "tool"),
    )
    return gauges


class DriftGauges(Collector):
    """Every label set that is fed. Registered once; reads the live state."""

    def __init__(
        self,
        drops: DriftDetectors,
        *,
        is_detailed: Callable[[], bool],
        caught_up: Callable[[], bool],
    ) -> None:
        """`is_detailed`: whether there are few enough agents for everything about a label set."""
        self._drops = drops
        self._is_detailed = is_detailed
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return drift_gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Every family at this moment; no family until the state from before a restart has been read back.

        A label set has `detected` and `progress_ratio` once its history is long enough for a comparison. With many
        agents it has `progress_ratio` from NEAR on, and `history_samples` then and while its history is too short.
        """
        if not self._caught_up():
            return
        gauges = drift_gauges()
        is_detailed = self._is_detailed()
        for watch in self._drops:
            labels, past = watch.labels, watch.past
            alarm, progress = watch.alarm, watch.progress
            is_compared = self._drops.is_compared(watch)
            is_shown = is_detailed or progress >= NEAR
            if past.history_samples and (is_shown or not is_compared):
                gauges["history_samples"].add_metric(labels, past.history_samples)
            if is_compared:
                gauges["detected"].add_metric(labels, float(alarm is not None))
            if is_compared and watch.pages:
                gauges["strong"].add_metric(labels, float(watch.is_strong))
            if is_compared and is_shown:
                gauges["progress_ratio"].add_metric(labels, progress)
            if alarm is not None:
                gauges["mean_rank_ratio"].add_metric(labels, alarm.mean_rank)
                gauges["since_timestamp_seconds"].add_metric(labels, alarm.since)
        for agent, cause in self._drops.causes().items():
            gauges["cause"].add_metric((*agent, *(cause or UNKNOWN)), 1)
        yield from gauges.values()
