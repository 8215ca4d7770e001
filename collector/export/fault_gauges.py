"""The gauges of fault watches: `spanwise_fault_*`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.watch.faults.faults import Faults


def fault_gauges() -> Mapping[str, GaugeMetricFamily]:
    """The gauges without samples, by name."""
    labels = ("service", "agent", "fault", "tool")
    gauges = {
        "detected": (
            "1 while a tool, model calls or answers fail more than before; 0 for an hour after.",
            (),
        ),
        "since_timestamp_seconds": (
            "Log time at which the first session with the fault was seen. While detected only.",
            (),
        ),
        "uses": (
            "Sessions that used it, since the fault began and before. While detected only.",
            ("period",),
        ),
        "failures": ("Those of them that failed. While detected only.", ("period",)),
    }
    return {
        name: GaugeMetricFamily(f"spanwise_fault_{name}", text, labels=(*labels, *more))
        for name, (text, more) in gauges.items()
    }


class FaultGauges(Collector):
    """Every fault that is shown. Registered once; reads the live state."""

    def __init__(self, faults: Faults, *, caught_up: Callable[[], bool]) -> None:
        self._faults = faults
        self._caught_up = caught_up

    def describe(self) -> Iterable[Metric]:
        """The families without samples, so that registering computes nothing."""
        return fault_gauges().values()

    def collect(self) -> Iterator[Metric]:
        """Every family at this moment; none until the state from before a restart has been read back."""
        if not self._caught_up():
            return
        gauges = fault_gauges()
        for agent in self._faults:
            for each in agent.faults():
                labels = (*agent.labels, each.fault, each.tool)
                gauges["detected"].add_metric(labels, 1)
                gauges["since_timestamp_seconds"].add_metric(labels, each.since)
                for period, uses, failures in (
                    ("before", each.uses_before, each.failures_before),
                    ("since", each.uses, each.failures),
                ):
                    gauges["uses"].add_metric((*labels, period), uses)
                    gauges["failures"].add_metric((*labels, period), failures)
            for fault, tool in agent.ended():
                gauges["detected"].add_metric((*agent.labels, fault, tool), 0)
        yield from gauges.values()
