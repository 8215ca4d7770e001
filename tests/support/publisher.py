"""The exporter over a log of the tests, driven step by step; dropping it is kill -9."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.config.tree import AgentWindow
from collector.export.exporter import PrometheusExporter
from collector.log.port import TRACES, New
from collector.records.codec import encode
from collector.records.signal import Signal
from collector.records.traces import TraceRecord, TracesTopic
from evaluators.formulas.past_limits import PastLimits
from evaluators.model import Trace
from tests.support.faulty_log import FaultyLog
from tests.support.signals import hex_of, new

SURVIVING = tuple(
    f"spanwise_{each}_"
    for each in ("agent", "window", "version", "drift", "objective", "last", "cost_per")
)
"""How the families begin whose values a restart keeps."""
SHORT = PastLimits(
    least=6,
    slacks=(0.1,),
    limits=(1.5,),
    clears_after=6,
    version_clears_after=4,
    journal=4,
    mark_age=0.0,
)
"""A past that a test can fill: an alarm after a handful of scores that are lower than six before."""
COUNTERS = ("_total", "_bucket", "_count", "_sum", "_created")


def objective(_: str) -> float:
    return 0.9


def closed_trace(agent: str, number: int, service: str = "support-bot", **fields: Any) -> Trace:
    return Trace(
        trace_id=hex_of(f"{agent}-{number}"),
        service=service,
        agent=agent,
        session_id="s-1",
        session_source="session.id",
        start_time_unix_nano=10**18,
        end_time_unix_nano=10**18 + 10**9,
        **fields,
    )


@dataclass
class Publisher:
    log: FaultyLog = field(default_factory=FaultyLog)
    limits: AgentWindow = field(default_factory=AgentWindow)
    objectives: Callable[[str], float | None] = objective
    joined: bool = False
    reads_traces: bool = False
    drops: PastLimits | None = None

    def __post_init__(self) -> None:
        self.telemetry = Telemetry(CollectorRegistry())
        self.exporter = PrometheusExporter(
            log=self.log,
            telemetry=self.telemetry,
            windows=self.limits,
            objectives=self.objectives,
            clock=self.log.clock,
            drops=self.drops,
        )

    def successor(self) -> Publisher:
        """The process that starts after a kill: it has the log, nothing else."""
        self.log.restart()
        return Publisher(
            log=self.log, limits=self.limits, objectives=self.objectives, drops=self.drops
        )

    async def step(self) -> None:
        """One poll; the first also reads the windows back. Raises LogUnavailable while the log is away."""
        if not self.joined:
            await self.exporter.restore()
            self.exporter.join()
            self.joined = True
            await self.exporter.step()
        await self.exporter.step()

    async def read_traces(self) -> None:
        """Read all of `traces`, as the exporter's other reader does. Raises LogUnavailable while the log is away."""
        if not self.joined:
            await self.step()
        reader = self.exporter._traces
        if not self.reads_traces:
            reader.join()
            self.reads_traces = True
            await reader.step()
        await reader.step()
        while not reader.caught_up:
            await reader.step()

    async def close_traces(self, *traces: Trace) -> None:
        """Append records of closed traces and read them."""
        records = [TraceRecord(trace=each, spans=(), revision=0, seen=0.0) for each in traces]
        await self.append(*records)

    async def append(self, *records: TracesTopic) -> None:
        """Append records to `traces` and read them."""
        await self.log.write([New(topic=TRACES, key=b"k", value=encode(each)) for each in records])
        await self.read_traces()

    async def publish(self, *signals: Signal, first: bool = True) -> None:
        """Append the signals and read them."""
        await self.log.write([new(each, first=first) for each in signals])
        await self.step()

    def gauges(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Every sample about agents that survives restarts."""
        return {
            (sample.name, tuple(sample.labels.values())): sample.value
            for metric in self.telemetry.registry.collect()
            for sample in metric.samples
            if sample.name.startswith(SURVIVING)
        }

    def value(self, name: str, **labels: str) -> float | None:
        """One sample, by a part of its labels; None when there is none."""
        found = [
            sample.value
            for metric in self.telemetry.registry.collect()
            for sample in metric.samples
            if sample.name == f"spanwise_{name}" and labels.items() <= sample.labels.items()
        ]
        assert len(found) <= 1, found
        return found[0] if found else None
