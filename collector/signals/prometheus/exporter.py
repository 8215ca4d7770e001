"""The Prometheus families about agents: a reader of `signals` whose windows survive restarts in topic `windows`.

    poll -> count and take in -> commit                  (each batch)
         -> what has settled enters the detectors
         -> windows and detectors that changed, with their commit      (every 10 s, and at the stop)

A commit holds two offsets. `offset` is where the stored windows end: after a restart, signals are read again from
there. `metadata` is where the counters end: below it no signal is counted again. Each window also knows what it has
read, so that on a log without transactions a crash between the records and the commit changes nothing either.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from msgspec.structs import replace

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
from collector.records.drops import DROPS
from collector.records.signal import FIRST, decode_signal, start_in
from collector.records.standing import AgentLabels, OpenRunaway, Standing, Standings
from collector.records.windows import (
    RANKED,
    RUNAWAYS,
    SLOTS,
    TASK,
    VERSIONS,
    decode_runaways,
    decode_slots,
    decode_task,
    decode_versions,
    decode_window,
)
from collector.runtime.retry import Retry
from collector.signals.prometheus.drop_gauges import DropGauges
from collector.signals.prometheus.drops import Drops
from collector.signals.prometheus.families import AgentFamilies, AgentGauges, TaskGauges
from collector.signals.prometheus.runaway_families import RunawayFamilies, RunawayGauges
from collector.signals.prometheus.runaways import OpenRunaways
from collector.signals.prometheus.stored_drops import read_drops
from collector.signals.prometheus.target import RecentIds
from collector.signals.prometheus.targets import Admitted, Objectives, Targets
from collector.signals.prometheus.task_runs import TaskRuns
from collector.signals.prometheus.trace_metrics import TraceMetrics
from collector.signals.sinks.families import SinkFamilies
from collector.telemetry import OTHER, Telemetry
from evaluators.formulas.past_limits import PastLimits

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
        drops: PastLimits | None = None,
        trace_age: float = 3600.0,
    ) -> None:
        """`objectives` by evaluator name; `task_window` is how many of a task's newest runs count.

        `drops`: how scores are compared with their own past, where that differs from the default.
        `trace_age`: seconds after which a trace has closed.
        """
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
        self._drops = Drops(drops or PastLimits(), settle=windows.settle)
        self._has_drops = False
        """Whether the detectors were read back since partitions were assigned."""
        self._runs = TaskRuns(window=task_window)
        self._traces = TraceMetrics(
            log=log,
            families=self._families,
            targets=self._targets,
            runs=self._runs,
            telemetry=telemetry,
        )
        self._runaways = OpenRunaways(trace_age)
        self._runaway_families = RunawayFamilies(telemetry)
        self._recent = RecentIds(RECENT)
        self._now = 0.0
        self._durable: dict[int, int] = {}
        self._counted: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        """By partition, the offset below which this process has taken in what the stored windows lack."""
        self._ahead: dict[int, int] = {}
        """By partition, how many signals from the commit's offset on were counted before the start."""
        self._stored = clock()
        self._caught_up = False
        self._has_counted = False
        self._was_detailed = True
        self._registry = telemetry.registry
        self._gauges = (
            AgentGauges(self._targets, self._log_time, caught_up=lambda: self._caught_up),
            DropGauges(
                self._drops,
                is_detailed=lambda: self._targets.is_detailed,
                caught_up=lambda: self._caught_up,
            ),
            TaskGauges(self._runs, caught_up=lambda: self._traces.caught_up),
            RunawayGauges(self._open_runaways),
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
            self._caught_up = False
            for each in self._gauges:
                self._registry.unregister(each)
            with suppress(Retryable):
                await self._log_port.write((), self._commits(self._durable))
            raise

    def standings(self) -> Standings:
        """How each agent stands, by its labels: the numbers behind the headline gauges.

        Empty until the windows from before a restart have been read back, as the gauges are.
        """
        if not self._caught_up:
            return {}
        found = {**self._targets.standings(self._log_time())}
        for (service, agent), drops in self._drops.by_agent().items():
            standing = found.get((service, agent)) or Standing(service=service, agent=agent)
            found[service, agent] = replace(standing, drops=drops)
        for (service, agent), traces in self._open_runaways().items():
            standing = found.get((service, agent)) or Standing(service=service, agent=agent)
            found[service, agent] = replace(standing, runaways=tuple(traces))
        return {agent: each for agent, each in found.items() if OTHER not in agent}

    def _open_runaways(self) -> dict[AgentLabels, list[OpenRunaway]]:
        """The open traces that run away, by the labels of their agent."""
        found: dict[AgentLabels, list[OpenRunaway]] = {}
        for each in self._runaways.shown(self._log_time()) if self._caught_up else ():
            found.setdefault(self._targets.shown_as(each.service, each.agent), []).append(each)
        return found

    def _log_time(self) -> float:
        return max(self._now, self._clock())

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
                if not record.key.startswith((RANKED, DROPS)):
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
        if record.key == RUNAWAYS:
            self._runaways.restore(decode_runaways(record.value))
            return
        if record.key.startswith(VERSIONS):
            self._targets.restore_versions(decode_versions(record.value))
            return
        if not record.key.startswith(TASK):
            self._targets.restore(decode_window(record.value))
            return
        agent, time = self._runs.restore(decode_task(record.value))
        if self._targets.agent_labels(*agent, time) != agent:
            self._runs.forget_agent(*agent)

    async def _restore_drops(self) -> None:
        self._drops.clear()
        await read_drops(self._log_port, self._drops, self._poison)
        self._has_drops = True

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
        self._drops.lose(partition)
        self._has_drops = self._has_drops and bool(self._assigned)

    async def assign(self, assigned: Assigned) -> None:
        """Go on from the stored windows; below the commit's metadata, signals are counted already."""
        partition = assigned.partition
        if assigned.offset is not None:
            self._durable[partition] = self._taken[partition] = assigned.offset
        self._counted[partition] = max(self._counted.get(partition, 0), assigned.metadata or 0)
        self._ahead[partition] = self._counted[partition] - (assigned.offset or 0)
        if not self._has_drops:
            await self._retry.log("read the detectors back", self._restore_drops)
        self._drops.own(partition)

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
        new = {each.partition for each in batch.assigned}
        ends = {partition: end for partition, end in batch.ends.items() if partition not in new}
        self._drops.advance({each.position.partition: each.time for each in batch.records} | ends)
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
        self._taken[partition] = offset + 1
        self._counted[partition] = max(self._counted.get(partition, 0), offset + 1)

    def _apply(self, record: Record, *, is_new: bool) -> None:
        signal = decode_signal(record.value)
        first = FIRST in record.headers
        admitted = self._targets.admit(signal, record.time)
        self._forget_evicted(admitted, is_new=is_new)
        if (dropped := self._runaways.take(signal)) is not None:
            self._runaway_families.dropped.labels(dropped).inc()
        start = start_in(record.headers)
        self._targets.take(
            signal, admitted.labels, record.position, record.time, first=first, start=start
        )
        is_taken = self._drops.offer(
            signal, admitted.labels, record.position, record.time, first=first
        )
        if is_new and not is_taken:
            self._families.drop_scores("max_settling", 1)
        if not signal.final or not self._recent.add(signal.id) or not is_new:
            return
        if self._was_detailed and not self._targets.is_detailed:
            self._was_detailed = False
            self._families.forget_scores()
        if first:
            histogram = self._targets.has_histogram(admitted.labels)
            self._families.count_first(signal, admitted.labels, record.time, histogram=histogram)
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
        self._drops.expire()
        if expired := self._runaways.expire(self._now):
            self._runaway_families.dropped.labels("max_age").inc(expired)
        reached = {partition: self._taken[partition] for partition in self._durable}
        self._families.drop_scores("forgotten", self._drops.forget(self._targets.holds))
        pending, runaways = self._targets.pending() | self._drops.pending(), self._runaways.pending
        records = [New(topic=WINDOWS, key=key, value=value) for key, value in pending.items()]
        if runaways is not None:
            records.append(New(topic=WINDOWS, key=RUNAWAYS, value=runaways))
        if records or reached != self._durable:
            await self._log_port.write(records, self._commits(reached))
            self._targets.written(pending)
            self._drops.written()
            self._runaways.written(runaways)
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
