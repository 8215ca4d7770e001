"""The Prometheus families about agents: a reader of `signals` whose windows survive restarts in topic `windows`.

    poll -> count and take in -> commit what was counted            (each batch)
         -> windows that changed + how far they reach, in one write (every 10 s, and at the stop)

One commit holds two offsets. Its `offset` is where the stored windows stand: signals are read again from there after a
restart. Its `metadata` is where counting stands: signals below it are counted. Each window also stores the offset
until which it was read, so that on a log without transactions a crash between records and commit changes nothing.
"""

from __future__ import annotations

import asyncio
import logging

from prometheus_client import CollectorRegistry

from collector.clock import Clock
from collector.config.tree import AgentWindow
from collector.errors import Retryable, Undecodable
from collector.log.port import (
    BACKGROUND_LINGER,
    SIGNALS,
    WINDOWS,
    Batch,
    Commit,
    Log,
    New,
    Reader,
    Record,
)
from collector.records.signal_codec import FIRST, decode_signal
from collector.records.windows import TASK, decode_task, decode_window
from collector.runtime.retry import Backoff
from collector.signals.prometheus.families import Families
from collector.signals.prometheus.gauges import AgentGauges
from collector.signals.prometheus.label_limit import OTHER
from collector.signals.prometheus.recent_ids import Seen
from collector.signals.prometheus.targets import Objectives, Placed, Targets
from collector.signals.prometheus.task_gauges import TaskGauges
from collector.signals.prometheus.task_runs import TaskRuns
from collector.signals.prometheus.trace_reader import TraceFamilies
from collector.telemetry import Telemetry

logger = logging.getLogger(__name__)

GROUP = "sink.prometheus"
EVERY = 10.0
"""Seconds between two writes of the windows."""
TURN = 32
"""Signals taken before the event loop has a turn: senders wait for their acknowledgements."""


class PrometheusSink:
    """Exactly one process runs it (role `publish`): it exports every family about agents."""

    def __init__(
        self,
        *,
        log: Log,
        telemetry: Telemetry,
        windows: AgentWindow,
        objectives: Objectives,
        clock: Clock,
        task_window: int = 20,
        registry: CollectorRegistry | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Register the families in `registry` (default: the telemetry's).

        `objectives` by evaluator name; `task_window` is how many of a task's newest runs count.
        """
        registry = telemetry.registry if registry is None else registry
        self._log = log
        self._telemetry = telemetry
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._targets = Targets(windows, objectives)
        self._families = Families(registry)
        self._runs = TaskRuns(window=task_window)
        self._traces = TraceFamilies(
            log=log,
            families=self._families,
            targets=self._targets,
            runs=self._runs,
            telemetry=telemetry,
        )
        self._seen = Seen(32_768)
        self._now = 0.0
        self._durable: dict[int, int] = {}
        self._counted: dict[int, int] = {}
        self._stored = clock()
        self._caught_up = False
        registry.register(
            AgentGauges(
                self._targets, lambda: max(self._now, clock()), caught_up=lambda: self._caught_up
            )
        )
        registry.register(TaskGauges(self._runs, caught_up=lambda: self._traces.caught_up))

    async def run(self, stopping: asyncio.Event) -> None:
        """Read the windows back, then follow `signals` and `traces` until `stopping` is set."""
        if not await self._until_restored(stopping):
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._traces.run(stopping))
            tasks.create_task(self._follow(stopping))

    async def _until_restored(self, stopping: asyncio.Event) -> bool:
        while not stopping.is_set():
            try:
                await self._restore()
            except Retryable as error:
                logger.warning("cannot read the windows back: %s", error)
                await self._backoff.wait(stopping)
            else:
                return True
        return False

    async def _restore(self) -> None:
        newest: dict[bytes, Record] = {}
        for partition in range(self._log.partitions(WINDOWS)):
            async for record in self._log.replay(WINDOWS, partition):
                newest[record.key] = record
        for record in newest.values():
            if not record.value:
                continue
            try:
                self._restore_one(record)
            except Undecodable as error:
                self._pass_over(record, error)

    def _restore_one(self, record: Record) -> None:
        if not record.key.startswith(TASK):
            self._targets.restore(decode_window(record.value))
            return
        agent, time = self._runs.restore(decode_task(record.value))
        placed, _ = self._targets.place_agent(*agent, time) if OTHER not in agent else (agent, None)
        if placed != agent:
            self._runs.forget_agent(*agent)

    async def _follow(self, stopping: asyncio.Event) -> None:
        reader = self._log.read(GROUP, SIGNALS, linger=BACKGROUND_LINGER)
        try:
            while not stopping.is_set():
                await self._step(reader, stopping)
            await self._try_to_store()
        finally:
            await reader.close()

    async def _step(self, reader: Reader, stopping: asyncio.Event) -> None:
        try:
            batch = await reader.poll(timeout=1.0)
            await self._take_over(batch)
            for number, record in enumerate(batch.records):
                self._take(record)
                if number % TURN == TURN - 1:
                    await asyncio.sleep(0)
            self._caught_up = self._caught_up or bool(batch.ends)
            if self._clock() - self._stored >= EVERY:
                await self._store()
            elif batch.records:
                await self._log.write((), self._commits())
            self._backoff.reset()
        except Retryable as error:
            logger.warning("metrics about agents wait for the log: %s", error)
            await self._backoff.wait(stopping)

    async def _take_over(self, batch: Batch) -> None:
        if batch.revoked:
            await self._try_to_store()
        for partition in batch.revoked:
            self._durable.pop(partition, None)
        for each in batch.assigned:
            if each.offset is not None:
                self._durable[each.partition] = each.offset
            self._counted[each.partition] = max(
                self._counted.get(each.partition, 0), each.metadata or 0
            )
        if batch.ends:
            self._now = max(self._now, min(batch.ends.values()))

    def _take(self, record: Record) -> None:
        _, partition, offset = record.position
        self._now = max(self._now, record.time)
        self._durable.setdefault(partition, offset)
        is_new = offset >= self._counted.get(partition, 0)
        try:
            self._apply(record, is_new=is_new)
        except Undecodable as error:
            if is_new:
                self._pass_over(record, error)
        self._counted[partition] = max(self._counted.get(partition, 0), offset + 1)

    def _apply(self, record: Record, *, is_new: bool) -> None:
        signal = decode_signal(record.value)
        first = FIRST in record.headers
        placed = self._targets.place(signal, record.time)
        self._make_room(placed, is_new=is_new)
        self._targets.take(signal, placed.labels, record.position, record.time, first=first)
        if not signal.final or not self._seen.add(signal.id) or not is_new:
            return
        if first:
            self._families.count_first(signal, placed.labels, record.time)
        else:
            self._families.count_revision(signal, placed.labels)

    def _make_room(self, placed: Placed, *, is_new: bool) -> None:
        if placed.evicted_agent is not None:
            self._families.forget_agent(*placed.evicted_agent)
            self._runs.forget_agent(*placed.evicted_agent)
        if placed.evicted_evaluator is not None:
            self._families.forget_evaluator(placed.evicted_evaluator)
        if is_new:
            for label in placed.overflows:
                self._telemetry.label_overflow.labels(label).inc()

    async def _store(self) -> None:
        """Write the windows that changed together with how far they reach."""
        self._stored = self._clock()
        self._targets.expire(self._now)
        reached = {partition: self._counted[partition] for partition in self._durable}
        records = [
            New(topic=WINDOWS, key=key, value=value)
            for key, value in self._targets.pending().items()
        ]
        if records or reached != self._durable:
            await self._log.write(records, self._commits(reached))
            self._targets.written()
            self._durable = reached

    async def _try_to_store(self) -> None:
        """At a stop or a hand-over: if the log is away now, what is missing is read again."""
        try:
            await self._store()
        except Retryable as error:
            logger.warning("cannot store the windows: %s", error)

    def _commits(self, durable: dict[int, int] | None = None) -> tuple[Commit, ...]:
        return tuple(
            Commit(
                group=GROUP,
                topic=SIGNALS,
                partition=partition,
                offset=offset,
                metadata=self._counted[partition],
            )
            for partition, offset in (durable or self._durable).items()
        )

    def _pass_over(self, record: Record, error: Undecodable) -> None:
        self._telemetry.poison_records.labels(record.position.topic).inc()
        logger.warning("passed over: %s: %s", record.position, error)
