"""The Prometheus families about agents: a reader of `signals` whose windows survive restarts in topic `windows`.

    poll -> count and take in -> commit                  (each batch)
         -> windows that changed, with their commit      (every 10 s, and at the stop)

A commit holds two offsets. `offset` is where the stored windows end: after a restart, signals are read again from
there. `metadata` is where the counters end: below it no signal is counted again. Each window also knows what it has
read, so that on a log without transactions a crash between the records and the commit changes nothing either.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from collector.clock import Clock
from collector.config.tree import AgentWindow
from collector.errors import Retryable, Undecodable
from collector.log.consumer import Consumer
from collector.log.port import (
    BACKGROUND_LINGER,
    SIGNALS,
    WINDOWS,
    Assigned,
    Batch,
    Commit,
    Log,
    New,
    Record,
)
from collector.records.signal import FIRST, decode_signal, start_in
from collector.records.windows import RANKED, SLOTS, TASK, decode_slots, decode_task, decode_window
from collector.runtime.retry import Retry
from collector.signals.prometheus.families import AgentFamilies, AgentGauges, TaskGauges
from collector.signals.prometheus.target import RecentIds
from collector.signals.prometheus.targets import Admitted, Objectives, Targets
from collector.signals.prometheus.task_runs import TaskRuns
from collector.signals.prometheus.trace_metrics import TraceMetrics
from collector.signals.sinks.families import SinkFamilies
from collector.telemetry import Telemetry

_log = logging.getLogger(__name__)

GROUP = "sink.prometheus"
EVERY = 10.0
"""Seconds between two writes of the windows."""
YIELD_EVERY = 32
"""Signals taken before other tasks may run: senders wait for their acknowledgements."""
RECENT = 32_768


class PrometheusExporter(Consumer):
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
    ) -> None:
        """`objectives` by evaluator name; `task_window` is how many of a task's newest runs count."""
        super().__init__(
            log=log,
            group=GROUP,
            topic=SIGNALS,
            retry=Retry("The reader of signals for the metrics"),
            telemetry=telemetry,
            linger=BACKGROUND_LINGER,
        )
        self._label_overflow = telemetry.label_overflow
        self._lost = SinkFamilies(telemetry).signals.labels("prometheus", "lost")
        self._clock = clock
        self._targets = Targets(windows, objectives)
        self._families = AgentFamilies(telemetry)
        self._runs = TaskRuns(window=task_window)
        self._traces = TraceMetrics(
            log=log,
            families=self._families,
            targets=self._targets,
            runs=self._runs,
            telemetry=telemetry,
        )
        self._recent = RecentIds(RECENT)
        self._now = 0.0
        self._durable: dict[int, int] = {}
        self._counted: dict[int, int] = {}
        self._ahead: dict[int, int] = {}
        """By partition, how many signals from the commit's offset on were counted before the start."""
        self._stored = clock()
        self._caught_up = False
        self._has_counted = False
        self._registry = telemetry.registry
        self._gauges = (
            AgentGauges(
                self._targets, lambda: max(self._now, clock()), caught_up=lambda: self._caught_up
            ),
            TaskGauges(self._runs, caught_up=lambda: self._traces.caught_up),
        )
        for each in self._gauges:
            self._registry.register(each)

    async def run(self, stopping: asyncio.Event) -> None:
        """Read the windows back, then follow `signals` and `traces` until `stopping` is set.

        After an error its gauges are gone and what it counted is committed: another exporter can take over.
        """
        try:
            await self._follow(stopping)
        except Exception:
            for each in self._gauges:
                self._registry.unregister(each)
            with suppress(Retryable):
                await self._log_port.write((), self._commits(self._durable))
            raise

    async def _follow(self, stopping: asyncio.Event) -> None:
        self._retry.stopping = stopping
        try:
            await self._retry.log("read the windows back", self.restore)
        except Retryable as error:
            _log.warning("The metrics stop before their windows could be read back: %s", error)
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._traces.run(stopping))
            tasks.create_task(super().run(stopping))

    async def restore(self) -> None:
        """Take back the windows and task runs of the topic `windows`."""
        newest: dict[bytes, Record] = {}
        for partition in range(self._log_port.partitions(WINDOWS)):
            async for record in self._log_port.replay(WINDOWS, partition):
                if not record.key.startswith(RANKED):
                    newest[record.key] = record
        for record in sorted(newest.values(), key=lambda each: each.key != SLOTS):
            if not record.value:
                continue
            try:
                self._restore_one(record)
            except Undecodable as error:
                self._poison.unprocessable(record.position, error)

    def _restore_one(self, record: Record) -> None:
        if record.key == SLOTS:
            self._targets.restore_slots(decode_slots(record.value))
            return
        if not record.key.startswith(TASK):
            self._targets.restore(decode_window(record.value))
            return
        agent, time = self._runs.restore(decode_task(record.value))
        if self._targets.agent_labels(*agent, time) != agent:
            self._runs.forget_agent(*agent)

    # --- the steps of the loop ---------------------------------------------------------------------------------------

    async def revoke(self, partition: int) -> None:
        """Store the windows while the commit is ours; if the log is away, what is missing is read again."""
        try:
            await self._store()
        except Retryable as error:
            _log.warning(
                "The windows cannot be stored before a partition is handed over: %s", error
            )
        self._durable.pop(partition, None)

    async def assign(self, assigned: Assigned) -> None:
        """Go on from the stored windows; below the commit's metadata, signals are counted already."""
        partition = assigned.partition
        if assigned.offset is not None:
            self._durable[partition] = assigned.offset
        self._counted[partition] = max(self._counted.get(partition, 0), assigned.metadata or 0)
        self._ahead[partition] = self._counted[partition] - (assigned.offset or 0)

    async def take(self, batch: Batch) -> None:
        """Count the signals and take them into the windows."""
        if batch.ends:
            self._now = max(self._now, min(batch.ends.values()))
        for partition, count in batch.lost.items():
            self._lost.inc(max(0, count - self._ahead.get(partition, 0)))
        for number, record in enumerate(batch.records, 1):
            self._take(record)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        self._caught_up = self._caught_up or bool(batch.ends)
        self._has_counted = self._has_counted or bool(batch.records)

    async def commit(self) -> None:
        """Every 10 seconds the windows; otherwise only what was counted."""
        if self._clock() - self._stored >= EVERY:
            await self.finish()
        elif self._has_counted:
            commits = self._commits(self._durable)
            await self._retry.log("commit signals", lambda: self._log_port.write((), commits))
            self._has_counted = False

    async def finish(self) -> None:
        """Store the windows."""
        await self._retry.log("store the windows", self._store)

    # --- signals -----------------------------------------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        _, partition, offset = record.position
        self._ahead.pop(partition, None)
        self._now = max(self._now, record.time)
        self._durable.setdefault(partition, offset)
        is_new = offset >= self._counted.get(partition, 0)
        try:
            self._apply(record, is_new=is_new)
        except Undecodable as error:
            if is_new:
                self._poison.unprocessable(record.position, error)
        self._counted[partition] = max(self._counted.get(partition, 0), offset + 1)

    def _apply(self, record: Record, *, is_new: bool) -> None:
        signal = decode_signal(record.value)
        first = FIRST in record.headers
        admitted = self._targets.admit(signal, record.time)
        self._forget_evicted(admitted, is_new=is_new)
        start = start_in(record.headers)
        self._targets.take(
            signal, admitted.labels, record.position, record.time, first=first, start=start
        )
        if not signal.final or not self._recent.add(signal.id) or not is_new:
            return
        if first:
            self._families.count_first(signal, admitted.labels, record.time)
        else:
            self._families.count_revision(signal, admitted.labels)

    def _forget_evicted(self, admitted: Admitted, *, is_new: bool) -> None:
        if admitted.evicted_evaluator is not None:
            self._families.forget_evaluator(admitted.evicted_evaluator)
        if is_new:
            for label in admitted.overflows:
                self._label_overflow.labels(label).inc()

    async def _store(self) -> None:
        """Write the windows that changed together with how far they reach."""
        self._stored = self._clock()
        self._targets.expire(self._now)
        reached = {partition: self._counted[partition] for partition in self._durable}
        pending = self._targets.pending()
        records = [New(topic=WINDOWS, key=key, value=value) for key, value in pending.items()]
        if records or reached != self._durable:
            await self._log_port.write(records, self._commits(reached))
            self._targets.written(pending)
            self._durable = reached

    def _commits(self, durable: dict[int, int]) -> tuple[Commit, ...]:
        return tuple(
            Commit(
                group=GROUP,
                topic=SIGNALS,
                partition=partition,
                offset=offset,
                metadata=self._counted[partition],
            )
            for partition, offset in durable.items()
        )
