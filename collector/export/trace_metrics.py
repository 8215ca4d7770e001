"""The reader behind `spanwise_trace_*` and `spanwise_task_*`: counts each closed trace once, keeps task runs.

Tasks that changed are written to topic `windows` with the commit of the batch that changed them. On a log without
transactions they come first: a run that is read again changes nothing.
"""

from collector.base.errors import Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import OTHER, Telemetry
from collector.export.families import AgentFamilies
from collector.export.label_counts import CountedIds
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, TRACES, Batch, Log, Record
from collector.records.trace_views import CountedTrace, TraceUsage, counted
from collector.records.traces import RunRecord
from collector.watch.task_runs import TaskRuns
from collector.watch.windows.targets import Targets

GROUP = "sink.prometheus.traces"


class TraceMetrics(Consumer):
    """Feeds durations, cost and tokens into the families; commits per batch, so a restart counts nothing again."""

    def __init__(
        self,
        *,
        log: Log,
        families: AgentFamilies,
        targets: Targets,
        runs: TaskRuns,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(
            log=log,
            group=GROUP,
            topic=TRACES,
            retry=Retry("The reader of traces for the metrics"),
            telemetry=telemetry,
            max_records=64,
            linger=BACKGROUND_LINGER,
        )
        self._families = families
        self._targets = targets
        self._runs = runs
        self._label_overflow = telemetry.label_overflow
        self._recent = CountedIds(32_768)
        self._has_swapped = False  # whether a slot went to another agent since the last commit
        self.caught_up = False  # whether every record written before the start has been read

    async def take(self, batch: Batch) -> None:
        for record in batch.records:
            self._take(record)
            self._offsets.done(record.position)
        self.caught_up = self.caught_up or bool(batch.ends)

    async def commit(self) -> None:
        changed, commits = self._runs.table.pending(), self._offsets.commits()
        if not changed and not commits:
            return
        if self._has_swapped:
            # Tasks of an agent without a slot would be forgotten at the next start.
            changed.append(self._targets.slots_record())
        await self._retry.log("store task runs", lambda: self._log_port.write(changed, commits))
        self._runs.table.written()
        self._has_swapped = False
        self._offsets.committed(commits)

    def _take(self, record: Record) -> None:
        try:
            decoded = counted(record)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return
        if isinstance(decoded, RunRecord):
            self._take_run(decoded)
        elif isinstance(decoded, CountedTrace) and decoded.revision == 0:
            self._take_trace(decoded.trace, record.time)

    def _take_run(self, run: RunRecord) -> None:
        agent = self._targets.agent_labels(run.service, run.agent)
        if OTHER in agent:
            self._label_overflow.labels("agent").inc()
        if not self._runs.keeps(run):
            self._families.drop_run(*agent, "no_success")
            return
        for evicted in self._runs.take(run, *agent):
            self._families.drop_run(*evicted, "max_tasks")

    def _take_trace(self, trace: TraceUsage, time: float) -> None:
        if not self._recent.add(trace.trace_id):
            return
        loser = self._targets.count_trace(trace.service, trace.agent, time)
        if loser is not None:
            self._families.forget_agent(*loser)
            self._runs.forget_agent(*loser)
            self._has_swapped = True
        self._families.count_trace(*self._targets.agent_labels(trace.service, trace.agent), trace)
