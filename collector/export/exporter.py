"""The Prometheus families about agents: a reader of `signals` whose windows survive restarts in topic `windows`.

    poll -> count and take in -> commit                  (each batch)
         -> what has settled enters the detectors
         -> windows and detectors that changed, with their commit      (every 10 s, and at the stop)

A commit holds two offsets. `offset` is where the stored windows end: after a restart, signals are read again from
there. `metadata` is where the counters end: below it no signal is counted again. Each window also knows what it has
read, so that on a log without transactions a crash between the records and the commit changes nothing either.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from collector.base import watch
from collector.base.clock import Clock
from collector.base.errors import Retryable, Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import OTHER, Telemetry
from collector.base.time_slice import TimeSlice
from collector.config.tree import AgentWindow
from collector.export import gauges
from collector.export.families import AgentFamilies
from collector.export.known_names import KnownNames
from collector.export.label_counts import CountedIds
from collector.export.session_costs import SessionCosts
from collector.export.trace_metrics import TraceMetrics
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, SIGNALS, Assigned, Batch, Commit, Log, Record
from collector.log.state_table import read_back
from collector.records.comparison import VersionWindow
from collector.records.signal_batch import SignalGroup, SignalHeader, SubjectHeader, groups_in
from collector.records.standing import AgentLabels, OpenRunaway, Standings
from collector.watch.drift.detectors import DriftDetectors, is_fed
from collector.watch.faults.fault_reader import FaultReader
from collector.watch.faults.faults import Faults
from collector.watch.open_runaways import RUNAWAY, OpenRunaways
from collector.watch.second_opinions import SecondOpinions
from collector.watch.task_runs import TaskRuns
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.standings import with_facts, with_opinions, with_worst
from collector.watch.windows.target import Labels
from collector.watch.windows.targets import Objectives, Targets
from evaluators.formulas.past_limits import PastLimits

_log = logging.getLogger(__name__)

GROUP = "sink.prometheus"
EVERY = 10.0
"""Seconds between two writes of the windows."""


class PrometheusExporter(Consumer):
    """Exactly one process runs it (role `publish`): it exports every family about agents."""

    def __init__(  # noqa: PLR0913 - its collaborators, by name
        self,
        *,
        log: Log,
        telemetry: Telemetry,
        windows: AgentWindow,
        objectives: Objectives,
        clock: Clock,
        runs: TaskRuns | None = None,
        drops: PastLimits | None = None,
        trace_age: float = 3600.0,
        opinions: SecondOpinions | None = None,
    ) -> None:
        """`objectives` by evaluator name; `runs`: which runs of tasks count, and what decides them.

        `drops`: how scores are compared, if not as usual. `trace_age`: seconds after which a trace has closed.
        """
        super().__init__(
            log=log,
            group=GROUP,
            topic=SIGNALS,
            retry=Retry("The reader of signals for the metrics"),
            telemetry=telemetry,
            linger=BACKGROUND_LINGER,
        )
        self._lost = telemetry.signals.labels("prometheus", "lost")
        self._clock = clock
        self._targets = Targets(windows, objectives)
        self._families = AgentFamilies(telemetry)
        self._drops = DriftDetectors(drops or PastLimits(), settle=windows.settle)
        self._has_drops = False  # whether they were read back since partitions were assigned
        self._runs = runs or TaskRuns(window=20)
        self._traces = TraceMetrics(
            log=log,
            families=self._families,
            targets=self._targets,
            runs=self._runs,
            telemetry=telemetry,
        )
        self._faults = Faults(settle=windows.settle)
        self._fault_reader = FaultReader(
            log=log,
            faults=self._faults,
            label=self._targets.agent_labels,
            holds=self._targets.holds_agent,
            telemetry=telemetry,
            clock=clock,
        )
        self._runaways = OpenRunaways(trace_age)
        self._costs = SessionCosts(windows.sessions)
        self._opinions = opinions or SecondOpinions()
        self._tables = (
            *self._targets.tables,
            self._runaways.table,
            self._costs.table,
            self._opinions.table,
        )
        self._recent = CountedIds(32_768)
        self._known = KnownNames(self._targets, self._families, telemetry.label_overflow)
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
        self._slice = TimeSlice()
        self._registry = telemetry.registry
        self._gauges = self._collectors()
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

    def _collectors(self) -> tuple[gauges.Gauges, ...]:
        """In the order in which /metrics shows them."""

        def here() -> bool:
            return self._caught_up

        def whole() -> bool:
            return self.caught_up

        made, of, drops, runs = gauges.Gauges, self._targets, self._drops, self._runs
        costs, faults, now = self._costs, self._faults, self._log_time
        reader = self._fault_reader
        return (
            made(gauges.AGENTS, lambda: gauges.agents(of, now(), self._changed_since), here),
            made(gauges.DRIFT, lambda: gauges.drift(drops, is_detailed=of.is_detailed), here),
            made(gauges.TASKS, lambda: gauges.tasks(runs), lambda: self._traces.caught_up),
            made(gauges.OPINIONS, lambda: gauges.opinions(self._opinions.shown()), here),
            made(gauges.RUNAWAYS, lambda: gauges.runaways(self._open_runaways()), here),
            made(gauges.RANKS, lambda: gauges.ranks(of), here),
            made(gauges.RELEASES, lambda: gauges.releases(of, faults, now()), whole),
            made(gauges.COSTS, lambda: gauges.costs(costs.per_success(of.holds_agent)), here),
            made(gauges.FAULTS, lambda: gauges.faults(faults), lambda: reader.caught_up),
        )

    @property
    def caught_up(self) -> bool:
        return self._caught_up and self._fault_reader.caught_up

    def standings(self) -> Standings:
        """The state of each agent, by its labels: the numbers behind the headline gauges.

        Empty until the windows from before a restart have been read back, as the gauges are.
        """
        if not self._caught_up:
            return {}
        now = self._log_time()
        found = self._targets.standings(now, self._changed_since)
        facts: dict[str, Mapping[AgentLabels, Sequence[object]]] = {
            "drops": self._drops.by_agent(),
            "watched": self._drops.watched(),
            **(self._faults.facts() if self._fault_reader.caught_up else {}),
            "runaways": self._open_runaways(),
        }
        shown = with_opinions(
            with_facts(found, facts), self._opinions.shown(), self._opinions.evaluator
        )
        return with_worst(shown, partial(self._targets.entries, now=now))

    def versions(self, agent: AgentLabels, name: str) -> Mapping[str, VersionWindow]:
        """Of an evaluator; empty until the windows have been read back."""
        if not self._caught_up:
            return {}
        judged = self._opinions.by_version(agent, name)
        return judged or self._targets.by_version(agent, name, self._log_time())

    def _changed_since(self, labels: Labels) -> float | None:
        return self._drops.changed_since(labels, self._faults)

    def _open_runaways(self) -> dict[AgentLabels, list[OpenRunaway]]:
        now, label = self._log_time(), self._targets.shown_as
        return self._runaways.by_agent(label, now) if self._caught_up else {}

    def _log_time(self) -> float:
        return max(self._now, self._clock())

    async def _follow(self, stopping: asyncio.Event) -> None:
        self._retry.stopping = stopping
        try:
            await self._retry.log("read the windows back", self.restore)
        except Retryable as error:
            _log.warning("The metrics stop before their windows could be read back: %s", error)
            return
        others = (self._traces.run(stopping), self._fault_reader.run(stopping))
        await watch.together("metrics", stopping, super().run(stopping), *others)

    async def restore(self) -> None:
        """Take back the windows and task runs of the topic `windows`."""
        await read_back(self._log_port, (*self._tables, self._runs.table), self._poison)
        for agent, ended in self._runs.newest().items():
            if self._targets.agent_labels(*agent, ended) != agent:
                self._runs.forget_agent(*agent)

    async def _restore_drops(self) -> None:
        self._drops.clear()
        await read_back(self._log_port, (self._drops.table,), self._poison)
        self._has_drops = True

    async def revoke(self, partition: int) -> None:
        """Store the windows while the commit is ours; if the log is away, what is missing is read again."""
        try:
            await self._store()
        except Retryable as error:
            _log.warning(
                "The windows cannot be stored before a partition is handed over: %s", error
            )
        self._durable.pop(partition, None)
        self._drops.log_time.lose(partition)
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
        self._drops.log_time.own(partition)

    async def take(self, batch: Batch) -> None:
        if batch.ends:
            self._now = max(self._now, min(batch.ends.values()))
        for partition, count in batch.lost.items():
            self._lost.inc(max(0, count - self._ahead.get(partition, 0)))
        for record in batch.records:
            self._take(record)
            await self._slice.give_way()
        new = {each.partition for each in batch.assigned}
        ends = {partition: end for partition, end in batch.ends.items() if partition not in new}
        reached = {each.position.partition: each.time for each in batch.records} | ends
        for _ in self._drops.entering(reached):
            await self._slice.give_way()
        for _ in self._drops.explain(self._faults):
            await self._slice.give_way()
        current = self._targets.versions.all_current
        self._opinions.look_at(self._drops.near_alarms, current, self._now)
        self._caught_up = self._caught_up or bool(batch.ends)
        self._has_counted = self._has_counted or bool(batch.records)

    async def commit(self) -> None:
        """Every 10 seconds the windows; otherwise only what was counted."""
        if self._opinions.requests or self._clock() - self._stored >= EVERY:
            await self.finish()
        elif self._has_counted:
            commits = self._commits(self._durable)
            await self._retry.log("commit signals", lambda: self._log_port.write((), commits))
            self._has_counted = False

    async def finish(self) -> None:
        await self._retry.log("store the windows", self._store)

    def _take(self, record: Record) -> None:
        _, partition, offset = record.position
        self._ahead.pop(partition, None)
        self._now = max(self._now, record.time)
        self._durable.setdefault(partition, record.first)
        counted = self._counted.get(partition, 0)
        try:
            groups = groups_in(record)
        except Undecodable as error:
            groups = ()
            if offset >= counted:
                self._poison.unprocessable(record.position, error)
        for group in groups:
            try:
                self._apply(group, partition, record.time, counted)
            except Undecodable as error:
                if group.first >= counted:
                    self._poison.unprocessable(record.position, error)
        self._taken[partition] = offset + 1
        self._counted[partition] = max(counted, offset + 1)

    def _apply(self, group: SignalGroup, partition: int, time: float, counted: int) -> None:
        """Take in the signals of a subject; those from offset `counted` on were not counted before."""
        subject = group.subject
        seen = Incoming(subject, time)
        known = self._known.of(subject)
        lag = max(0.0, time - seen.arrived)
        if not seen.is_trace:
            labels = self._targets.agent_labels(subject.service, subject.agent)
            self._costs.take(labels, seen, group)
        offset, at = group.first, 0
        for header in group.headers:
            is_new = offset >= counted
            place = known.get(header.evaluator)
            if place is None:
                place = self._known.find(subject, header, time, is_new=is_new)
                known = self._known.of(subject)
            elif place.tally is not None:
                place.tally.count(time)
            if header.evaluator == RUNAWAY:
                self._take_runaway(subject, header, group.lines[at : at + header.size])
            self._targets.take(place, seen, header, partition, offset)
            if is_fed(header, is_trace=seen.is_trace):
                is_taken = self._drops.offer(place.labels, seen, header, partition, offset)
                if is_new and not is_taken:
                    self._families.drop_scores("max_settling", 1)
            if header.final and self._recent.add(header.id) and is_new:
                self._count(place.labels, seen, header, lag)
            if header.evaluator == self._opinions.evaluator and OTHER not in place.labels:
                self._opinions.take(place.labels[:2], seen, header, is_new=is_new)
            offset += 1
            at += header.size + 1

    def _take_runaway(self, subject: SubjectHeader, header: SignalHeader, json: memoryview) -> None:
        if (dropped := self._runaways.take(subject, header, json)) is not None:
            self._families.runaways_dropped.labels(dropped).inc()

    def _count(self, labels: Labels, seen: Incoming, header: SignalHeader, lag: float) -> None:
        is_detailed = self._targets.is_detailed
        if self._was_detailed and not is_detailed:
            self._was_detailed = False
            self._families.forget_scores()
        if header.first:
            histogram = is_detailed or self._targets.objective(labels) is not None
            self._families.count_first(labels, seen.subject, header, lag, histogram=histogram)
        else:
            self._families.count_revision(labels, header)

    async def _store(self) -> None:
        self._stored = self._clock()
        self._targets.expire(self._now)
        self._drops.expire()
        if expired := self._runaways.expire(self._now):
            self._families.runaways_dropped.labels("max_age").inc(expired)
        reached = {partition: self._taken[partition] for partition in self._durable}
        forgotten = self._drops.forget(self._targets.holds)
        self._families.drop_scores(
            "forgotten", sum(each.past.history_samples for each in forgotten)
        )
        self._targets.note_slots()
        self._costs.forget(self._targets.holds_agent)
        self._opinions.forget(self._targets.holds_agent)
        tables = (*self._tables, self._drops.table)
        asked = self._opinions.pending()
        records = asked + [record for each in tables for record in each.pending()]
        if records or reached != self._durable:
            await self._log_port.write(records, self._commits(reached))
            self._opinions.written()
            for table in tables:
                table.written()
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
