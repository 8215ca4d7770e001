"""Did scores get worse than they were? Every label set that is fed, compared with its own past. Pure.

A session's score enters once: when the session has been quiet for `windows.agent.settle`, or has closed. A trace's
enters at its first final outcome. Log time has passed a moment when every partition has: so what enters, and in which
order, does not depend on how partitions interleave, nor on what a restart reads again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping

from collector.base.errors import Undecodable
from collector.base.telemetry import OTHER, short
from collector.records.codec import encode
from collector.records.drops import DropPart, DropState, drop_key
from collector.records.signal_batch import SignalHeader
from collector.records.standing import AgentLabels, Drop, Watched
from collector.signals.log_time import LogTime
from collector.signals.prometheus.drop_watch import DropWatch
from collector.signals.prometheus.seen import Seen
from collector.signals.prometheus.target import Labels, ServiceKey
from collector.signals.settling import Update
from evaluators.coverage import is_low
from evaluators.formulas.past_limits import PastLimits

SESSIONS = frozenset({"agent_reliability", "agent_consistency", "work_baseline", "task_agreement"})
"""Session evaluators that are fed, beside those that a judge scores."""
TRACES = frozenset({"tool_correctness", "confidence", "task_completion"})
"""Trace evaluators that are fed."""


class Drops:
    """Every label set, and those that changed since they were last written to topic `windows`."""

    def __init__(self, limits: PastLimits, *, settle: float) -> None:
        """`settle` is in seconds of log time."""
        self._limits = limits
        self._settle = settle
        self._services: dict[ServiceKey, dict[Labels, DropWatch]] = {}
        self._watches: dict[Labels, DropWatch] = {}
        self._changed: set[Labels] = set()
        self._removed: dict[bytes, None] = {}
        """Keys whose records are to be removed."""
        self._due: dict[Labels, dict[int, bytes]] = {}
        """By label set, the parts among the records that `pending` gave last."""
        self.log_time = LogTime()

    def by_agent(self) -> dict[AgentLabels, tuple[Drop, ...]]:
        """What ranks otherwise than it was, in both directions, of each agent of which anything does."""
        found: dict[AgentLabels, tuple[Drop, ...]] = {}
        for (service, agent, evaluator, scope), watch in sorted(self._watches.items()):
            for direction, alarm in watch.alarms():
                drop = Drop(
                    evaluator=evaluator,
                    scope="trace" if scope == "trace" else "session",
                    direction=direction,
                    since=alarm.since,
                    mean_rank=alarm.mean_rank,
                    sessions=alarm.sessions,
                )
                found[service, agent] = (*found.get((service, agent), ()), drop)
        return found

    def watched(self) -> dict[AgentLabels, tuple[Watched, ...]]:
        """Every comparison of each agent that has any."""
        found: dict[AgentLabels, tuple[Watched, ...]] = {}
        for (service, agent, evaluator, scope), watch in sorted(self._watches.items()):
            each = Watched(
                evaluator=evaluator,
                scope="trace" if scope == "trace" else "session",
                progress=watch.progress if self.is_compared(watch) else None,
                samples=watch.past.history_samples,
                trail=watch.trail.packed,
            )
            found[service, agent] = (*found.get((service, agent), ()), each)
        return found

    def is_compared(self, watch: DropWatch) -> bool:
        """Whether the label set's history is long enough for a comparison, or its alarm stands."""
        return watch.alarm is not None or watch.past.history_samples >= self._limits.least

    def __iter__(self) -> Iterator[DropWatch]:
        return iter(tuple(self._watches.values()))

    # --- log time ----------------------------------------------------------------------------------------------------

    def entering(self, reached: Mapping[int, float]) -> Iterator[None]:
        """These partitions have no more records from before these log times: what has settled by then enters.

        One score with each step, between which other tasks may run; no score may be offered before the last one.
        """
        self.log_time.reach(reached)
        passed = self.log_time.passed
        for labels, watch in self._watches.items():
            for _ in watch.entering(passed):
                self._changed.add(labels)
                yield

    def expire(self) -> None:
        """End alarms that are old, as their next score would."""
        passed = self.log_time.passed
        for labels, watch in self._watches.items():
            if watch.past.expire(passed):
                self._changed.add(labels)

    # --- scores ------------------------------------------------------------------------------------------------------

    def offer(
        self, labels: Labels, seen: Seen, header: SignalHeader, partition: int, offset: int
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
            self._withdraw(watch, update)
            return True
        if watch is None:
            watch = self._add(key, DropWatch(labels, self._limits))
        due = seen.time if header.final else seen.time + self._settle
        taken = watch.offer(update, score, due=due, version=seen.version)
        if taken:
            self._changed.add(labels)
        return taken is not None

    def _is_decided(self, key: ServiceKey, labels: Labels, update: Update) -> bool:
        """Whether the update comes too late for any agent. What other agents of the service wait with is withdrawn.

        That is done for records that were taken in before, too: a crash may have stored one agent's state of the two.
        """
        decided = False
        agents = self._services.get(key)
        if agents is None:
            return False
        for each in agents.values():
            if each.settling.is_decided(update):
                decided = True
            elif each.labels != labels:
                self._withdraw(each, update)
        return decided

    def _withdraw(self, watch: DropWatch | None, update: Update) -> None:
        if watch is not None and watch.settling.withdraw(update):
            self._changed.add(watch.labels)

    # --- storing -----------------------------------------------------------------------------------------------------

    def clear(self) -> None:
        """Forget every label set, to read them back with the partitions, each from its commit."""
        self._services.clear()
        self._watches.clear()
        self._changed.clear()
        self._removed.clear()
        self._due.clear()
        self.log_time.begin_again()

    def restore(self, state: DropState, parts: Mapping[int, bytes]) -> None:
        """Take a label set back from its records.

        Raises:
            Undecodable: they are not what was stored.
        """
        labels = Labels(*state.labels)
        try:
            watch = DropWatch(labels, self._limits, state, parts)
        except (ValueError, struct.error) as error:
            raise Undecodable(f"the past of {labels}: {error}") from error
        self._add((labels.service, labels.evaluator, labels.scope), watch)

    def forget(self, holds: Callable[[Labels], bool]) -> int:
        """Forget label sets that `holds` no longer: their label values went to others. Returns how many scores."""
        gone = [each for each in self._watches if not holds(each)]
        scores = 0
        for labels in gone:
            watch = self._watches.pop(labels)
            scores += watch.past.history_samples
            self._changed.discard(labels)
            del self._services[labels.service, labels.evaluator, labels.scope][labels]
            # The state is removed last: without it, parts that a crash left would be taken for those of a new one.
            self._removed |= {drop_key(labels, each): None for each in sorted(watch.parts)}
            self._removed |= {drop_key(labels): None}
        return scores

    def pending(self) -> dict[bytes, bytes | None]:
        """By key, the records that topic `windows` lacks, in the order of the write; None removes one."""
        changed = [self._watches[each] for each in self._changed]
        self._due = {each.labels: each.due() for each in changed}
        parts = {
            drop_key(labels, name): encode(DropPart(labels=labels, name=name, packed=packed))
            for labels, due in self._due.items()
            for name, packed in due.items()
        }
        # A part that is older than its state is brought up to date by it; the other way round it could not be.
        written = {drop_key(each.labels): each.encode() for each in changed} | parts
        removed = {key: None for key in self._removed if key not in written}
        return removed | written

    def written(self) -> None:
        """What `pending` gave last is in the topic."""
        for labels, due in self._due.items():
            self._watches[labels].written(due)
        self._changed.clear()
        self._removed.clear()
        self._due.clear()

    def _add(self, key: ServiceKey, watch: DropWatch) -> DropWatch:
        self._watches[watch.labels] = watch
        self._services.setdefault(key, {})[watch.labels] = watch
        return watch


def is_fed(header: SignalHeader, *, is_trace: bool) -> bool:
    """Whether the signal is compared with the past of its evaluator; of a trace the first final one."""
    if is_trace:
        return header.first and header.final and header.evaluator in TRACES
    return header.evaluator in SESSIONS or header.method == "llm_judge"
