"""The metric families about open traces that run away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.base.telemetry import Telemetry
from collector.records.standing import AgentLabels, OpenRunaway


class RunawayFamilies:
    """Traces that are no longer shown although their outcome has not come."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.dropped = telemetry.counter(
            "runaway_traces_dropped",
            "Open traces that ran away and are forgotten before their final outcome, by reason.",
            "reason",
        )
        """By reason: `max_traces`, `max_age`."""


class RunawayGauges(Collector):
    """How many open traces run away. Registered once; reads the live state."""

    def __init__(self, shown: Callable[[], Mapping[AgentLabels, Sequence[OpenRunaway]]]) -> None:
        self._shown = shown

    def describe(self) -> Iterable[Metric]:
        return (_gauge(),)

    def collect(self) -> Iterator[Metric]:
        """One sample for each agent and reason that has such traces."""
        gauge = _gauge()
        for agent, some in self._shown().items():
            for reason, count in sorted(Counter(each.reason for each in some).items()):
                gauge.add_metric((*agent, reason), count)
        yield gauge


def _gauge() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "spanwise_runaway_traces",
        "Open traces that are running away, by reason.",
        labels=("service", "agent", "reason"),
    )
