"""All label sets that role `publish` exports, within their caps. Pure: time is an argument."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from collector.base.slots import NameVolume, Slots
from collector.base.telemetry import OTHER, short
from collector.config.tree import AgentWindow
from collector.log.port import New
from collector.log.state_table import Parts, StateTable
from collector.records.codec import encode
from collector.records.comparison import VersionWindow
from collector.records.signal import COMPARED, HEADLINES
from collector.records.signal_batch import SignalHeader
from collector.records.standing import AgentLabels, Standing
from collector.records.windows import SlotsRecord, WindowEntry, WindowRecord
from collector.watch.windows.incoming import Incoming
from collector.watch.windows.standings import Headline, standing_of
from collector.watch.windows.target import Labels, ServiceKey, Target
from collector.watch.windows.versions import VersionsOfAgents
from evaluators.coverage import is_low
from evaluators.model import Scope

Objectives = Callable[[str], float | None]
"""By evaluator; None: it has no objective, so no drift is looked for and no burn rate computed."""

MAX_AGENTS = 64
"""(service, agent) pairs with a name of their own: those with the most traces lately."""
MAX_EVALUATORS = 64  # evaluators with a name of their own: those with the most signals lately

MAX_DETAILED_AGENTS = 12
"""(service, agent) pairs up to which every evaluator has its histogram and its window on /metrics.

Above it only those that alerts read have them: it is measured so that a scrape stays below 0.4 MB either way.
"""


class TargetPlace(NamedTuple):
    """A label set with what its next signal needs, found once. It holds until `Targets.generation` changes."""

    labels: Labels
    target: Target
    objective: float | None
    others: tuple[tuple[Labels, Target], ...]
    """The targets of other agents that may hold the same sessions."""
    tally: NameVolume | None
    """Of its evaluator, while agent and evaluator have label values of their own."""


class Admitted(NamedTuple):
    """The labels of a signal, the evaluator that was evicted for them, and the names of labels that were folded."""

    labels: Labels
    evicted_evaluator: str | None = None
    overflows: tuple[str, ...] = ()


class Targets:
    def __init__(self, limits: AgentWindow, objectives: Objectives) -> None:
        """`objectives` gives an evaluator's objective by its name."""
        self._limits = limits
        self._objectives = objectives
        self._targets: dict[Labels, Target] = {}
        self._services: dict[ServiceKey, dict[Labels, Target]] = {}
        """The targets of all agents of a service."""
        self._table: StateTable[Labels, WindowRecord] = StateTable(
            "window", Labels, WindowRecord, encode=self._encode, restore=self._restore
        )
        self._agents: Slots[AgentLabels] = Slots(MAX_AGENTS)
        self._evaluators: Slots[str] = Slots(MAX_EVALUATORS)
        self._externals: Slots[str] = Slots(MAX_EVALUATORS)
        """The same of external evaluators, so that their names never take the place of ours."""
        self.versions = VersionsOfAgents(limits.version_silence, self._has_labels)
        self._slots: StateTable[str, SlotsRecord] = StateTable(
            "slots", str, SlotsRecord, encode=self._slots_now, restore=self._restore_slots
        )
        self._slots_written = b""
        self.generation = 0  # changes when a place that was found no longer holds

    def count_trace(self, service: str, agent: str, now: float) -> AgentLabels | None:
        """Count a trace of the agent at log time `now`; returns the agent that lost its slot to it, if one did."""
        pair = (short(service), short(agent))
        loser = None if OTHER in pair else self._agents.count(pair, now)
        if loser is not None:
            self._remove(lambda each: each[:2] == loser)
            self.versions.forget(loser)
        return loser

    def agent_labels(self, service: str, agent: str, since: float = float("-inf")) -> AgentLabels:
        """The (service, agent) labels to use; a free slot is taken with the volume of one trace at `since`."""
        pair = (short(service), short(agent))
        return pair if OTHER not in pair and self._agents.hold(pair, since) else (OTHER, OTHER)

    def holds(self, labels: Labels) -> bool:
        return (labels.service, labels.agent) in self._agents and (
            labels.evaluator in self._evaluators or labels.evaluator in self._externals
        )

    def holds_agent(self, agent: AgentLabels) -> bool:
        return agent in self._agents

    def shown_as(self, service: str, agent: str) -> AgentLabels:
        """The (service, agent) labels of an agent now; it takes no slot."""
        pair = (short(service), short(agent))
        return pair if pair in self._agents else (OTHER, OTHER)

    def admit(
        self,
        service: str,
        agent: str,
        evaluator: str,
        scope: str,
        now: float,
        *,
        is_external: bool = False,
    ) -> Admitted:
        """The labels to use for a signal of these names, written at log time `now`."""
        labelled = self.agent_labels(service, agent)
        evaluator = short(evaluator)
        slots = self._externals if is_external else self._evaluators
        loser = None if evaluator == OTHER else slots.count(evaluator, now)
        if loser is not None:
            self._remove(lambda each: each.evaluator == loser)
        if evaluator not in slots:  # counting it has taken a slot where it could
            evaluator = OTHER
        labels = Labels(*labelled, evaluator, scope)
        if OTHER not in labels:
            return Admitted(labels, loser)
        folded = {"agent": labelled == (OTHER, OTHER), "evaluator": evaluator == OTHER}
        return Admitted(labels, loser, tuple(each for each in folded if folded[each]))

    def place(self, labels: Labels, service: str, evaluator: str) -> TargetPlace:
        """The place of a label set, for signals of these names; its target begins if there is none."""
        target = self._targets.get(labels)
        if target is None:
            target = self._add(Target(labels, self._limits))
        return TargetPlace(
            labels=labels,
            target=target,
            objective=self._objectives(evaluator),
            others=self._others(labels, service) if labels.scope == "session" else (),
            tally=None
            if OTHER in labels
            else self._slots_with(labels.evaluator).tally(labels.evaluator),
        )

    def take(
        self, place: TargetPlace, seen: Incoming, header: SignalHeader, partition: int, offset: int
    ) -> None:
        """Take in a signal of `place`, at this offset of a partition.

        Windows take final scores and those of open sessions, and leave out a session from when too little of it is
        seen for a score; the detector takes each subject's first final score.
        A session counts for one agent: the one that its latest score names.
        """
        entry = _entry(seen, header, place.labels)
        is_latest = True
        if entry is not None:
            if place.labels.agent != OTHER:
                self.versions.see(place.labels[:2], seen.version, seen.arrived)
            is_latest = not place.others or self._hand_over_elsewhere(place, seen, entry)
        target = place.target
        if offset < target.next_offsets.get(partition, 0):
            return  # taken in before, perhaps before a restart
        target.next_offsets[partition] = offset + 1
        self._table.changed[place.labels] = None
        if entry is None:
            return
        target.offer(
            entry if is_latest else replace(entry, gone=True),
            seen.version,
            is_compared=header.evaluator in COMPARED or header.method == "external",
        )
        if header.score is None:
            return
        target.last_score = max(target.last_score, seen.time)
        objective = place.objective
        if objective is None:
            return
        if header.first and header.final:
            target.feed(header.id, entry.score, objective)
        target.settle(seen.time, objective)

    def _hand_over_elsewhere(self, place: TargetPlace, seen: Incoming, entry: WindowEntry) -> bool:
        """A session counts no longer under its earlier agents; False: its latest score names another agent.

        It runs for signals that were taken in before, too: a crash may have stored one agent's windows of the two.
        """
        is_latest = True
        for other, target in place.others:
            handed_over = target.hand_over(replace(entry, session=seen.session_in(other)))
            is_latest = is_latest and handed_over is not None
            if handed_over:
                self._table.change(other)
        return is_latest

    def _others(self, labels: Labels, service: str) -> tuple[tuple[Labels, Target], ...]:
        services = {short(service), OTHER}
        return tuple(
            (other, target)
            for each in sorted(services)
            for other, target in self._services.get(
                (each, labels.evaluator, labels.scope), {}
            ).items()
            if other != labels
        )

    def expire(self, now: float) -> None:
        """Forget sessions that had no trace for too long; take the looks at versions that are due."""
        for labels, target in self._targets.items():
            if target.expire(now):
                self._table.change(labels)

    def standings(
        self, now: float, changed: Callable[[Labels], float | None]
    ) -> dict[AgentLabels, Standing]:
        """The state of each agent at log time `now`, in order of its labels; `changed`: when an active change began."""
        headlines: dict[AgentLabels, list[Headline]] = {}
        for labels, target in self._targets.items():
            if labels.evaluator in HEADLINES:
                headline = Headline(target, self.versions.current(labels[:2]), changed(labels))
                headlines.setdefault(labels[:2], []).append(headline)
        return {agent: standing_of(each, now) for agent, each in sorted(headlines.items())}

    def entries(
        self, agent: AgentLabels, evaluator: str, scope: Scope, now: float
    ) -> Sequence[WindowEntry]:
        target = self._targets.get(Labels(*agent, evaluator, scope))
        return () if target is None else target.window.counting(now)

    def by_version(
        self, agent: AgentLabels, evaluator: str, now: float
    ) -> Mapping[str, VersionWindow]:
        target = self._targets.get(Labels(*agent, evaluator, "session"))
        if target is None and evaluator in self._externals:
            target = self._targets.get(Labels(*agent, evaluator, "trace"))
        if target is None:
            return {}
        return {
            version: VersionWindow(window.counting(now), target.looks.get(version))
            for version, window in target.versions(None)
        }

    @property
    def tables(self) -> tuple[StateTable[Any, Any], ...]:
        """Its state, in the order in which it is read back: the slots of names before what takes them."""
        return self._slots, self.versions.table, self._table

    def slots_record(self) -> New:
        return self._slots.record("", self._slots_now(""))

    def note_slots(self) -> None:
        slots = encode(self._slots_now(""))
        if slots != self._slots_written:
            self._slots_written = slots
            self._slots.change("")

    def _slots_now(self, _key: str) -> SlotsRecord:
        return SlotsRecord(
            agents=self._agents.state(),
            evaluators=self._evaluators.state(),
            externals=self._externals.state(),
        )

    def _restore_slots(self, _key: str, record: SlotsRecord, _parts: Parts) -> None:
        self.generation += 1
        self._agents.restore(record.agents)
        self._evaluators.restore(record.evaluators)
        self._externals.restore(record.externals)

    def _encode(self, labels: Labels) -> WindowRecord | None:
        target = self._targets.get(labels)
        return None if target is None else target.record()

    def _restore(self, labels: Labels, record: WindowRecord, _parts: Parts) -> None:
        """Take a target back; one whose names have no slots is removed."""
        target = Target.of(labels, record, self._limits)
        since, evaluator = target.last_score, labels.evaluator
        has_agent = self._has_labels(labels[:2], since)
        has_slot = evaluator == OTHER or self._slots_with(evaluator).hold(evaluator, since)
        if has_agent and has_slot:
            self._add(target)
        else:
            self._table.forget(labels)

    def _slots_with(self, evaluator: str) -> Slots[str]:
        return self._externals if evaluator in self._externals else self._evaluators

    def _has_labels(self, agent: AgentLabels, since: float) -> bool:
        return agent == self.agent_labels(*agent, since)

    def objective(self, labels: Labels) -> float | None:
        return self._objectives(labels.evaluator)

    @property
    def is_detailed(self) -> bool:
        return len(self._agents) <= MAX_DETAILED_AGENTS

    def has_histogram(self, labels: Labels) -> bool:
        return self.is_detailed or self.objective(labels) is not None

    def has_window(self, labels: Labels) -> bool:
        """Whether the label set has the gauges of its window; an agent without headlines has those that it has."""
        if self.has_histogram(labels) or labels.evaluator in HEADLINES:
            return True
        headlines = (labels._replace(evaluator=each, scope="session") for each in HEADLINES)
        return not any(each in self._targets for each in headlines)

    def __iter__(self) -> Iterator[Target]:
        return iter(tuple(self._targets.values()))

    def _add(self, target: Target) -> Target:
        self.generation += 1
        self._targets[target.labels] = target
        self._services.setdefault(_service(target.labels), {})[target.labels] = target
        return target

    def _remove(self, leaves: Callable[[Labels], bool]) -> None:
        self.generation += 1
        for labels in [each for each in self._targets if leaves(each)]:
            del self._targets[labels]
            targets = self._services[_service(labels)]
            del targets[labels]
            if not targets:
                del self._services[_service(labels)]
            self._table.forget(labels)


def _entry(seen: Incoming, header: SignalHeader, labels: Labels) -> WindowEntry | None:
    """The entry of a scored signal, or of a session that is too little seen: it takes the place of its earlier score.

    None for the stand-in of a trace, which is not mixed with verdicts.
    """
    score, final, coverage = header.score, header.final, header.coverage
    if not final and seen.is_trace:
        return None
    covered = coverage is None or not is_low(coverage)
    if score is None and (covered or header.outcome != "skipped"):
        return None
    subject = seen.subject
    return WindowEntry(
        seen.session if labels.agent != OTHER else seen.session_in(labels),
        seen.arrived,
        subject.revision,
        final,
        header.id,
        score or 0.0,
        covered,
        subject.start,
        subject.trace_id or "",
        False,
        seen.version,
        1 / header.sample_probability if header.sample_probability else 1.0,
    )


def _service(labels: Labels) -> ServiceKey:
    return labels.service, labels.evaluator, labels.scope
