"""The families about fault watches: `spanwise_fault_*`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.base.telemetry import Telemetry
from collector.signals.faults.faults import Faults


class FaultFamilies:
    """What is not watched, or no longer."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._watches = telemetry.counter(
            "fault_watches_dropped", "Fault watches that were forgotten, by reason.", "reason"
        )
        self._sessions = telemetry.counter(
            "fault_sessions_dropped", "Sessions that enter no fault watch, by reason.", "reason"
        )
        for reason in ("max_tools", "forgotten"):
            self._watches.labels(reason)
        self._sessions.labels("max_settling")

    def drop_watches(self, reason: str, count: int) -> None:
        """`max_tools`: those of a tool that is used less than another; `forgotten`: of an agent without labels."""
        self._watches.labels(reason).inc(count)

    def drop_session(self, reason: str) -> None:
        """`max_settling`: too many sessions of the agent settle at once."""
        self._sessions.labels(reason).inc()


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
