"""The fault watches of every agent. Pure.

What a turn used enters when its trace has closed, in the order of (log time, trace id).
"""

from collections.abc import Mapping, Sequence

from collector.base.telemetry import OTHER, short
from collector.log.state_table import Parts
from collector.records.standing import AgentLabels, Fault, LookedAt
from collector.records.traces import WorkRecord
from collector.records.windows import AgentFaultsState, SettlingUses
from collector.watch.comparisons import Comparisons
from collector.watch.faults.agent_faults import AgentFaults
from collector.watch.settling import Update, bounded, digest_of

LOOKED_AT_LEAST = 900.0  # seconds after which a drop has no cause, though a tool was used rarely


class Faults(Comparisons[AgentLabels, AgentFaults]):
    def __init__(self, *, settle: float) -> None:
        """`settle`: seconds of log time after which a session that goes on enters a watch again."""
        super().__init__("faults", tuple[str, str], AgentFaultsState)
        self._settle = settle

    def _service(self, key: AgentLabels) -> str:
        return key[0]

    def _made(self, key: AgentLabels, state: AgentFaultsState, parts: Parts) -> AgentFaults:
        return AgentFaults(key, self._settle, state, parts.get(AgentFaults.ENTERED, b""))

    def by_agent(self) -> dict[AgentLabels, tuple[Fault, ...]]:
        found = {labels: tuple(watches.faults()) for labels, watches in self._watches.items()}
        return {labels: faults for labels, faults in found.items() if faults}

    def facts(self) -> Mapping[str, Mapping[AgentLabels, Sequence[object]]]:
        """What a `Standing` says of each agent, by field."""
        always = {key: tuple(watches.failing_always()) for key, watches in self._watches.items()}
        return {
            "faults": self.by_agent(),
            "failing_always": {labels: tools for labels, tools in always.items() if tools},
            "by_version": {
                key: tuple(watches.by_version()) for key, watches in self._watches.items()
            },
        }

    def looked_at(self, labels: AgentLabels, since: float) -> LookedAt | None:
        is_late = self.log_time.passed - since >= LOOKED_AT_LEAST
        return None if is_late else self.of(labels).looked_at(since)

    def of(self, labels: AgentLabels) -> AgentFaults:
        """Its watches; without any where the agent is not watched."""
        return self._watches.get(labels) or AgentFaults(labels, self._settle)

    def offer(
        self, labels: AgentLabels, work: WorkRecord, time: float, partition: int, offset: int
    ) -> bool:
        """Take in what a session's turn used, a record of log time `time` at this offset of a partition.

        An agent without label values of its own is not watched: `_other` is a mixture.
        Returns False when too many turns of the agent wait to enter, and this one is left out.
        """
        used = work.used
        if used is None or OTHER in labels:
            return True
        session = bounded(work.session_id)
        turn = bounded(f"{used.trace_id} {used.revision}" if used.revision else used.trace_id)
        rank = (work.revision, False)
        update = Update(turn, digest_of(turn), rank, time, work.seen, partition, offset)
        if self._is_decided(short(work.service), labels, update):
            return True
        watches = self._watches.get(labels)
        if watches is None:
            watches = self._add(labels, AgentFaults(labels, self._settle))
        held = SettlingUses(
            turn,
            time,
            *rank,
            work.seen,
            used.uses,
            is_named=session == work.session_id,
            session=session,
            is_revised=used.revision > 0,
            version=short(work.agent_version or ""),
        )
        taken = watches.settling.offer(update, held)
        if taken:
            self.table.change(labels)
        return taken is not None
