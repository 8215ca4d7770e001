"""The gauges of release verdicts: `spanwise_version_rank_ratio`, for what reads PromQL (Keptn, Harness, Kayenta)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.records.signal import HEADLINES
from collector.records.windows import ReleaseLook
from collector.watch.windows.target import Target
from collector.watch.windows.targets import Targets

_LABELS = ("service", "agent", "evaluator", "agent_version", "baseline")


def rank_gauges() -> Mapping[str, GaugeMetricFamily]:
    """The gauges without samples, by the field of a look that they show."""
    texts = {
        "rank": (
            "ratio",
            "Chance that a session of the version scores better than one of the version before, at its last look.",
        ),
        "lower": ("lower_bound_ratio", "Lower bound of that chance."),
        "upper": ("upper_bound_ratio", "Upper bound of that chance."),
    }
    return {
        field: GaugeMetricFamily(f"spanwise_version_rank_{name}", text, labels=_LABELS)
        for field, (name, text) in texts.items()
    }


class RankGauges(Collector):
    """One sample for each version that was looked at, of the headlines. Registered once; reads the live state."""

    def __init__(self, targets: Targets, *, caught_up: Callable[[], bool]) -> None:
        self._targets = targets
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return rank_gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Every family at this moment; none until the windows from before a restart have been read back."""
        if not self._caught_up():
            return
        gauges = rank_gauges()
        for target in self._targets:
            service, agent, evaluator, _ = target.labels
            for version, baseline, look in _last(target) if evaluator in HEADLINES else ():
                labels = (service, agent, evaluator, version, baseline)
                for field, gauge in gauges.items():
                    gauge.add_metric(labels, getattr(look, field))
        yield from gauges.values()


def _last(target: Target) -> Iterator[tuple[str, str, ReleaseLook]]:
    for version, each in target.looks.items():
        if each.baseline is not None and each.looks:
            yield version, each.baseline, each.looks[-1]
