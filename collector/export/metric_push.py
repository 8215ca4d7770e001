"""Sends the process's metric families to an OTLP backend at an interval. Nothing of it is kept in the log."""

import asyncio
import logging
from contextlib import suppress

from collector.base.clock import Clock
from collector.base.errors import Permanent, Retryable
from collector.base.telemetry import Telemetry
from collector.config.tree import MetricsTarget
from collector.otlp.client import transport_to
from collector.otlp.metric_stream import Export, MetricStream, names_of
from collector.otlp.signal import METRICS_SERVICE

SECTION = "metrics.otlp"
TIMEOUT = 20.0
"""Seconds of one request."""
LAST = 3.0  # seconds that a stop waits for the last one
_log = logging.getLogger(__name__)


class MetricFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self.exports = telemetry.counter(
            "metric_exports", "Requests with metrics to `metrics.otlp`, by result.", "result"
        )
        """By result: `sent`, `failed`, `refused`."""


class MetricPush:
    """A missed interval is the next one's: a failure is repeated by the next request, with what was added since.

    `settings`: where to, how often and in which form. `clock`: Unix seconds. `instance`: what tells this process from
    others. Raises ConfigError: the endpoint is not one.
    """

    def __init__(
        self, settings: MetricsTarget, *, telemetry: Telemetry, clock: Clock, instance: str
    ) -> None:
        self._settings = settings
        self._registry = telemetry.registry
        self._exports = MetricFamilies(telemetry).exports
        self._clock = clock
        self._transport = transport_to(settings, METRICS_SERVICE, section=SECTION, timeout=TIMEOUT)
        self._failing = False
        self._stream = MetricStream(
            {"service.name": "spanwise", "service.instance.id": instance},
            is_delta=settings.temporality == "delta",
            start=self._now(),
            families=settings.families,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Send at every interval, and once more at the stop."""
        self._warn_of_unknown_families()
        try:
            is_last = False
            while not is_last:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.interval):
                        await stopping.wait()
                is_last = stopping.is_set()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST if is_last else None):
                        await self.push()
        finally:
            await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def push(self) -> None:
        """Everything as it stands; after a failure the rest waits for the next time."""
        for export in self._stream.requests(self._registry.collect(), self._now()):
            if not await self._send(export):
                return

    async def _send(self, export: Export) -> bool:
        try:
            rejected, why = await self._transport.export(export.body)
        except Retryable as error:
            self._note("failed", str(error))
            return False
        except Permanent as error:
            self._note("refused", str(error))
        else:
            self._note("refused" if rejected else "sent", f"{rejected} points: {why}")
        self._stream.taken(export)
        return True

    def _note(self, result: str, why: str) -> None:
        self._exports.labels(result).inc()
        if result == "sent":
            self._failing = False
        elif not self._failing:
            self._failing = True
            _log.warning(
                "%s.endpoint does not take our metrics: %s", SECTION, " ".join(why.split())
            )

    def _warn_of_unknown_families(self) -> None:
        asked = self._settings.families or ()
        known = {name for family in self._registry.collect() for name in names_of(family)}
        for name in sorted(set(asked) - known):
            _log.warning("%s.families: no family is called `%s` yet", SECTION, name)

    def _now(self) -> int:
        return int(self._clock() * 1e9)
