"""The reader behind `spanwise_trace_*`: counts each closed trace once."""

from __future__ import annotations

import asyncio
import logging

from collector.errors import Retryable, Undecodable
from collector.log.port import TRACES, Commit, Log, Reader, Record
from collector.signals.backoff import Backoff
from collector.signals.families import Families
from collector.signals.seen import Seen
from collector.signals.targets import Targets
from collector.signals.trace_facts import duration, tokens, trace_facts
from collector.telemetry import Telemetry

logger = logging.getLogger(__name__)

GROUP = "sink.prometheus.traces"


class TraceFamilies:
    """Feeds durations, cost and tokens into the families; commits per batch, so a restart counts nothing again."""

    def __init__(
        self, *, log: Log, families: Families, targets: Targets, telemetry: Telemetry
    ) -> None:
        self._log = log
        self._families = families
        self._targets = targets
        self._telemetry = telemetry
        self._seen = Seen(32_768)

    async def run(self, stopping: asyncio.Event) -> None:
        """Count until `stopping` is set."""
        reader = self._log.read(GROUP, TRACES)
        backoff = Backoff()
        try:
            while not stopping.is_set():
                try:
                    await self._step(reader)
                    backoff.reset()
                except Retryable as error:
                    logger.warning("cannot read traces for the metrics: %s", error)
                    await backoff.wait(stopping)
        finally:
            await reader.close()

    async def _step(self, reader: Reader) -> None:
        batch = await reader.poll(max_records=64, timeout=1.0)
        commits: dict[int, Commit] = {}
        for record in batch.records:
            self._take(record)
            _, partition, offset = record.position
            commits[partition] = Commit(
                group=GROUP, topic=TRACES, partition=partition, offset=offset + 1
            )
        if commits:
            await self._log.write((), tuple(commits.values()))

    def _take(self, record: Record) -> None:
        try:
            facts = trace_facts(record)
        except Undecodable as error:
            self._telemetry.poison_records.labels(TRACES).inc()
            logger.warning("passed over: %s: %s", record.position, error)
            return
        if facts is None or not self._seen.add(facts.trace.trace_id):
            return
        (service, agent), evicted = self._targets.place_agent(
            facts.trace.service, facts.trace.agent, record.time
        )
        if evicted is not None:
            self._families.forget_agent(*evicted)
        self._families.count_trace(
            service,
            agent,
            duration=duration(facts),
            cost_usd=facts.trace.cost_usd,
            tokens=tokens(facts),
        )
