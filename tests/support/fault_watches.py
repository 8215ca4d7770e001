"""Sessions as scoring tells fault watches of them, and the reader over a log of the tests."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from collector.base.telemetry import Telemetry
from collector.export import gauges
from collector.log.port import TRACES, New
from collector.records.codec import encode
from collector.records.standing import AgentLabels, Fault
from collector.records.traces import TurnUses, WorkRecord
from collector.watch.faults.agent_faults import AgentFaults
from collector.watch.faults.fault_reader import FaultReader
from collector.watch.faults.faults import Faults
from evaluators.uses import SessionUses, ToolUse
from tests.support.faulty_log import FaultyLog

SETTLE = 300.0
AGENT = ("bot", "planner")


def used(tool: str = "find_order", **facts: Any) -> SessionUses:
    return SessionUses(tools=(ToolUse(tool, 1)._replace(**{"returned": True, **facts}),))


def used_all(
    tools: Iterable[str], *, failing: Container[str] = (), server: str = ""
) -> SessionUses:
    """A session that used each of these tools once."""
    every = (used(each, failed=each in failing, server=server).tools[0] for each in tools)
    return SessionUses(tools=tuple(every))


FINE = used()
FAILED = used(failed=True, error="TimeoutError")


def work(
    session: str, uses: SessionUses | None = FINE, *, turn: str = "", **fields: Any
) -> WorkRecord:
    """What scoring says when a turn of the session closes; `turn`: its trace, one for each session unless given."""
    defaults: dict[str, Any] = {
        "service": "bot",
        "agent": "planner",
        "session_source": "session.id",
        "seen": 0.0,
        "revision": 1,
        "digest": "d",
    }
    revised = fields.pop("revised", 0)
    used = uses and TurnUses(trace_id=turn or f"trace of {session}", revision=revised, uses=uses)
    return WorkRecord(session_id=session, used=used, **{**defaults, **fields})


@dataclass
class Watcher:
    """The reader; dropping it is kill -9."""

    log: FaultyLog = field(default_factory=FaultyLog)
    settle: float = SETTLE
    is_joined: bool = False
    agents: set[AgentLabels] | None = None
    """Those with labels of their own; None: all."""

    def __post_init__(self) -> None:
        self.telemetry = Telemetry(CollectorRegistry())
        self.faults = Faults(settle=self.settle)
        self.reader = FaultReader(
            log=self.log,
            faults=self.faults,
            label=self._label,
            holds=lambda agent: self.agents is None or agent in self.agents,
            telemetry=self.telemetry,
            clock=self.log.clock,
        )
        self.telemetry.registry.register(
            gauges.Gauges(
                gauges.FAULTS, lambda: gauges.faults(self.faults), lambda: self.reader.caught_up
            )
        )

    def _label(self, service: str, agent: str) -> AgentLabels:
        known = self.agents is None or (service, agent) in self.agents
        return (service, agent) if known else ("_other", "_other")

    def successor(self) -> Watcher:
        """The process that starts after a kill: it has the log, nothing else."""
        self.log.restart()
        return Watcher(log=self.log, settle=self.settle, agents=self.agents)

    async def step(self) -> None:
        """One poll; the first also joins."""
        if not self.is_joined:
            self.reader.join()
            self.is_joined = True
            await self.reader.step()
        await self.reader.step()

    async def say(self, *records: WorkRecord) -> None:
        """Append records and read them."""
        await self.log.write([record_of(each) for each in records])
        await self.step()

    async def enter(self, *records: WorkRecord) -> None:
        """Append records and read on until log time has passed them, so that they enter."""
        await self.say(*records)
        self.log.clock.now += 1
        await self.step()

    @property
    def agent(self) -> AgentFaults:
        """The only one that is watched."""
        (agent,) = self.faults
        return agent

    def learned(self, tool: str = "find_order") -> tuple[int, int]:
        """Uses of a tool that entered, and those of them that failed."""
        uses, failures = self.agent._watches["tool_failed", tool].watch.learned
        return round(uses), round(failures)

    async def live(self, *sessions: SessionUses, every: float = 60.0, begin: int = 0) -> None:
        """A session of one turn each minute."""
        for number, uses in enumerate(sessions, begin):
            await self.say(work(f"s-{number}", uses, seen=self.log.clock.now))
            self.log.clock.now += every
        await self.step()

    def shown(self) -> dict[tuple[str, str], Fault]:
        """By fault and tool, of the one agent."""
        faults = self.faults.by_agent().get(AGENT, ())
        return {(each.fault, each.tool): each for each in faults}

    def value(self, name: str, **labels: str) -> float | None:
        """One sample, by a part of its labels; None when there is none."""
        found = [
            sample.value
            for metric in self.telemetry.registry.collect()
            for sample in metric.samples
            if sample.name == f"spanwise_fault_{name}" and labels.items() <= sample.labels.items()
        ]
        assert len(found) <= 1, found
        return found[0] if found else None


def record_of(each: WorkRecord) -> New:
    return New(topic=TRACES, key=each.session_id.encode(), value=encode(each))
