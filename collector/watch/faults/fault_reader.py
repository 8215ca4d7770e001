"""The reader of `traces` behind `spanwise_fault_*`; its watches survive restarts in topic `windows`.

    poll -> what sessions used is taken in -> what has settled enters
         -> watches that changed, with the commit      (every 10 s, and at the stop)

Exactly one process runs it (role `publish`), because the watches of an agent span all partitions. Each agent's watches
know what they have read, so that a crash between the records and the commit changes nothing.
"""

from collections.abc import Callable

from collector.base.clock import Clock
from collector.base.errors import Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.base.time_slice import TimeSlice
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, TRACES, Assigned, Batch, Log, Record
from collector.log.state_table import read_back
from collector.records.standing import AgentLabels
from collector.records.trace_views import work_in
from collector.records.traces import WorkRecord
from collector.watch.families import FaultFamilies
from collector.watch.faults.faults import Faults

GROUP = "sink.prometheus.faults"
EVERY = 10.0
"""Seconds between two writes of the watches."""


class FaultReader(Consumer):
    def __init__(
        self,
        *,
        log: Log,
        faults: Faults,
        label: Callable[[str, str], AgentLabels],
        holds: Callable[[AgentLabels], bool],
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        """`label`: the (service, agent) labels of an agent; `holds`: whether labels are still of the same agent."""
        super().__init__(
            log=log,
            group=GROUP,
            topic=TRACES,
            retry=Retry("The reader of traces for fault watches"),
            telemetry=telemetry,
            max_records=64,
            linger=BACKGROUND_LINGER,
        )
        self._faults = faults
        self._label = label
        self._holds = holds
        self._families = FaultFamilies(telemetry)
        self._clock = clock
        self._stored = clock()
        self._slice = TimeSlice()
        self._is_restored = False
        self.caught_up = False  # whether every record written before the start has been read

    async def revoke(self, partition: int) -> None:
        """Another process may own the watches now: they are read back with the next partition."""
        self._faults.log_time.lose(partition)
        self._is_restored = self._is_restored and bool(self._assigned)

    async def assign(self, assigned: Assigned) -> None:
        """Read the watches back, once for all partitions."""
        if not self._is_restored:
            await self._retry.log("read the fault watches back", self._restore)
            self._is_restored = True
        self._faults.log_time.own(assigned.partition)

    async def take(self, batch: Batch) -> None:
        """Take in what sessions used; what has settled enters."""
        for record in batch.records:
            self._take(record)
            self._offsets.done(record.position)
            await self._slice.give_way()
        new = {each.partition for each in batch.assigned}
        ends = {partition: end for partition, end in batch.ends.items() if partition not in new}
        reached = {each.position.partition: each.time for each in batch.records} | ends
        for _ in self._faults.entering(reached):
            await self._slice.give_way()
        self.caught_up = self.caught_up or bool(batch.ends)

    async def commit(self) -> None:
        if self._clock() - self._stored >= EVERY:
            await self.finish()

    async def finish(self) -> None:
        self._stored = self._clock()
        self._faults.expire()
        for agent in self._faults:
            self._families.watches.labels("max_tools").inc(agent.watches_dropped)
            agent.watches_dropped = 0
        forgotten = self._faults.forget(self._holds)
        self._families.watches.labels("forgotten").inc(sum(each.size for each in forgotten))
        records, commits = self._faults.table.pending(), self._offsets.commits()
        if records or commits:
            await self._retry.log(
                "store the fault watches", lambda: self._log_port.write(records, commits)
            )
            self._faults.table.written()
            self._offsets.committed(commits)

    def _take(self, record: Record) -> None:
        _, partition, offset = record.position
        try:
            work = work_in(record)
        except Undecodable as error:
            self._poison.unprocessable(record.position, error)
            return
        if not isinstance(work, WorkRecord):
            return
        labels = self._label(work.service, work.agent)
        if not self._faults.offer(labels, work, record.time, partition, offset):
            self._families.sessions.labels("max_settling").inc()

    async def _restore(self) -> None:
        self._faults.clear()
        await read_back(self._log_port, (self._faults.table,), self._poison)
