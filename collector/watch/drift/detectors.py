"""Did scores get worse than they were? Every label set that is fed, compared with its own past. Pure.

A session's score enters once: when the session has been quiet for `windows.agent.settle`, or has closed. A trace's
enters at its first final outcome.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

from collector.base.telemetry import OTHER, short
from collector.log.state_table import Parts
from collector.records.signal_batch import SignalHeader
from collector.records.standing import AgentLabels, Drop, LookedAt, WatchedScores
from collector.records.windows import DriftState
from collector.watch.comparisons import Comparisons
from collector.watch.drift.detector import DriftDetector
from collector.watch.faults.faults import Faults
from collector.watch.second_opinions import NearAlarm
from collector.watch.settling import Update
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.target import Labels, ServiceKey
from evaluators.coverage import is_low
from evaluators.formulas.fault_watch import Cause
from evaluators.formulas.past_limits import PastLimits

SESSIONS = frozenset({"agent_reliability", "agent_consistency", "work_baseline", "task_agreement"})
"""Session evaluators that are fed, beside those that a judge scores."""
TRACES = frozenset({"tool_correctness", "confidence", "task_completion"})
"""Trace evaluators that are fed."""


T = TypeVar("T")


class DriftDetectors(Comparisons[Labels, DriftDetector]):
    def __init__(self, limits: PastLimits, *, settle: float) -> None:
        """`settle` is in seconds of log time."""
        super().__init__("drift", Labels, DriftState)
        self._limits = limits
        self._settle = settle

    def _service(self, key: Labels) -> ServiceKey:
        return key.service, key.evaluator, key.scope

    def _made(self, key: Labels, state: DriftState, parts: Parts) -> DriftDetector:
        return DriftDetector(key, self._limits, state, parts)

    def by_agent(self) -> dict[AgentLabels, tuple[Drop, ...]]:
        found = self._of_agents(lambda watch: tuple(watch.drops()))
        drops = {agent: tuple(chain.from_iterable(each)) for agent, each in found.items()}
        return {agent: each for agent, each in drops.items() if each}

    def near_alarms(self) -> dict[AgentLabels, tuple[NearAlarm, ...]]:
        return self._of_agents(DriftDetector.near_alarm)

    def watched(self) -> dict[AgentLabels, tuple[WatchedScores, ...]]:
        return self._of_agents(DriftDetector.watched)

    def _of_agents(self, said: Callable[[DriftDetector], T]) -> dict[AgentLabels, tuple[T, ...]]:
        """What is said of each of an agent's label sets, in order of their labels."""
        found: dict[AgentLabels, tuple[T, ...]] = {}
        for labels, watch in sorted(self._watches.items()):
            found[labels[:2]] = (*found.get(labels[:2], ()), said(watch))
        return found

    def explain(self, faults: Faults) -> Iterator[None]:
        """Name the fault that explains a fall, one fall with each step; one whose named cause is over is over."""
        for labels, watch in tuple(self._watches.items()):
            past, alarm = watch.past, watch.past.worse
            if alarm is None:
                continue
            yield
            agent = labels[:2]
            cause = faults.of(agent).cause(alarm.since)
            if cause is not None and past.explain(cause):
                self.table.change(labels)
            watch.looked_at = None if past.cause else faults.looked_at(agent, alarm.since)
            named = past.cause
            if named is not None and faults.of(agent).is_over(*named, alarm.began):
                past.end_worse()
                self.table.change(labels)

    def changed_since(self, labels: Labels, faults: Faults) -> float | None:
        """When the change began that is now: of these scores, else of a fault; None: nothing has changed."""
        watch = self._watches.get(labels)
        change = watch and (watch.past.worse or watch.past.better)
        return faults.of(labels[:2]).since if change is None else change.since

    def causes(self) -> dict[AgentLabels, Cause | LookedAt | None]:
        """Of each agent whose scores have dropped, what explains it, or why that is not known; None: nothing does."""
        found: dict[AgentLabels, Cause | LookedAt | None] = {}
        for labels, watch in sorted(self._watches.items()):
            known = found.get(labels[:2])
            if watch.alarm is not None and not isinstance(known, tuple):
                found[labels[:2]] = watch.past.cause or watch.looked_at or known
        return found

    def offer(
        self, labels: Labels, seen: Incoming, header: SignalHeader, partition: int, offset: int
    ) -> bool:
        """Take in a signal that `is_fed`, at this offset of a partition.

        Every sample is random (`Signal.sample`). An agent or evaluator without a label value of its own is not
        compared with anything: `_other` is a mixture.
        Returns False when too many of its label set settle at once, and it is left out.
        """
        rank = (seen.subject.revision, header.final)
        update = Update(*seen.fed, rank, seen.time, seen.arrived, partition, offset)
        key = (short(seen.subject.service), labels.evaluator, labels.scope)
        if self._is_decided(key, labels, update) or OTHER in labels:
            return True
        score, coverage = header.score, header.coverage
        watch = self._watches.get(labels)
        if score is None or (coverage is not None and is_low(coverage)):
            self._withdraw(labels, update)
            return True
        if watch is None:
            watch = self._add(labels, DriftDetector(labels, self._limits))
        due = seen.time if header.final else seen.time + self._settle
        taken = watch.offer(update, score, due=due, version=seen.version)
        if taken:
            self.table.changed[labels] = None
        return taken is not None


def is_fed(header: SignalHeader, *, is_trace: bool) -> bool:
    if is_trace:
        known = header.evaluator in TRACES or header.method == "external"
        return header.first and header.final and known
    return header.evaluator in SESSIONS or header.method in ("llm_judge", "external")
