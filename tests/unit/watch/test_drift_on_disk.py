"""The exporter over the disk log: a regression is noticed, a kill changes nothing, a fixed version clears it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.config.tree import AgentWindow
from collector.export.exporter import GROUP, PrometheusExporter
from collector.log.disk.disk_log import DiskLog
from collector.log.port import SIGNALS
from tests.support.eventually import eventually
from tests.support.publisher import SHORT
from tests.support.signals import new, signal
from tests.support.ticking import SetClock

GOOD = [0.8, 0.85, 0.9, 0.95] * 3
NAMES = ("drift_detected", "drift_mean_rank_ratio", "drift_since_timestamp_seconds")


class Life:
    """One process over the log."""

    def __init__(self, log: DiskLog, clock: SetClock) -> None:
        self.log, self.clock = log, clock
        self.telemetry = Telemetry(CollectorRegistry())
        self.exporter = PrometheusExporter(
            log=log,
            telemetry=self.telemetry,
            windows=AgentWindow(),
            objectives=lambda _: None,
            clock=clock,
            drops=SHORT,
        )

    async def publish(self, *scores: float, version: str) -> None:
        """Sessions of both partitions that close with these scores."""
        for score in scores:
            said = signal(
                f"s-{self.clock.now}", None, score=score, final=True, agent_version=version
            )
            await self.log.write([new(said)])
            self.clock.now += 7

    def shown(self) -> list[float | None]:
        found = {
            sample.name: sample.value
            for metric in self.telemetry.registry.collect()
            for sample in metric.samples
        }
        return [found.get(f"spanwise_{name}") for name in NAMES]

    async def shows(self, detected: float) -> None:
        await eventually(lambda: self.shown()[0] == detected)

    async def has_read(self, signals: int) -> None:
        """The exporter has taken in so many, of this process's life."""

        def found() -> float:
            return sum(
                sample.value
                for metric in self.telemetry.registry.collect()
                for sample in metric.samples
                if sample.name == "spanwise_evaluations_total"
            )

        await eventually(lambda: found() == signals)


@asynccontextmanager
async def life(folder: Path, clock: SetClock, *, killed: bool = False) -> AsyncGenerator[Life]:
    """`killed`: it ends without a last write."""
    log = await DiskLog.open(
        folder,
        max_size=64 << 20,
        clock=clock,
        telemetry=Telemetry(CollectorRegistry()),
        groups={SIGNALS: frozenset({GROUP})},
        partitions=2,
    )
    this = Life(log, clock)
    stopping = asyncio.Event()
    running = asyncio.create_task(this.exporter.run(stopping))
    try:
        yield this
    finally:
        if killed:
            running.cancel()
        stopping.set()
        await asyncio.wait([running])
        await log.close()


async def test_a_regression_is_noticed_kept_over_a_kill_and_a_stop_and_cleared(
    tmp_path: Path,
) -> None:
    clock = SetClock(1_700_000_000.0)
    async with life(tmp_path, clock, killed=True) as first:
        await first.publish(*GOOD, version="1")
        await first.shows(0)
        await first.publish(*[0.1] * 8, version="2")
        await first.shows(1)
        await first.has_read(len(GOOD) + 8)
        before = first.shown()

    async with life(tmp_path, clock) as second:
        await eventually(lambda: second.shown() == before)

    async with life(tmp_path, clock) as third:
        await eventually(lambda: third.shown() == before)
        await third.publish(*GOOD, version="3")
        await third.shows(0)
        assert third.shown() == [0, None, None]
