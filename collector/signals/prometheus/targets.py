"""All label sets that role `publish` exports, within their caps. Pure: time is an argument."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from collector.config.tree import AgentWindow
from collector.log.port import Position
from collector.records.sessions import session_key
from collector.records.signal import Signal, unix_seconds
from collector.records.windows import WindowEntry, WindowRecord
from collector.signals.prometheus.target import MIN_COVERAGE, Labels, Target
from collector.telemetry import OTHER

Agent = tuple[str, str]
"""(service, agent)."""
Objectives: TypeAlias = Callable[[str], float | None]
"""By evaluator; None: it has no objective, so no drift is looked for and no burn rate computed."""
K = TypeVar("K", bound=Hashable)

MAX_AGENTS = 64
"""(service, agent) pairs with a name of their own."""
MAX_EVALUATORS = 64
IDLE = 86400.0
"""Seconds without use after which a value may be evicted for another."""


class Admitted(NamedTuple):
    """The labels of a signal, and the values that were evicted or folded for them."""

    labels: Labels
    evicted_agent: Agent | None = None
    evicted_evaluator: str | None = None
    overflows: tuple[str, ...] = ()


class Targets:
    """Every target, and those that changed since they were last written to topic `windows`."""

    def __init__(self, limits: AgentWindow, objectives: Objectives) -> None:
        """`objectives` gives an evaluator's objective by its name."""
        self._limits = limits
        self._objectives = objectives
        self._targets: dict[Labels, Target] = {}
        self._changed: set[Labels] = set()
        self._removed: set[Labels] = set()
        self._agents: LabelLimit[Agent] = LabelLimit(MAX_AGENTS)
        self._evaluators: LabelLimit[str] = LabelLimit(MAX_EVALUATORS)

    def admit_agent(self, service: str, agent: str, now: float) -> tuple[Agent, Agent | None]:
        """The (service, agent) labels to use, and the pair that was evicted for them."""
        admitted, evicted = self._agents.admit((service, agent), now)
        if evicted is not None:
            self._remove(lambda each: each[:2] == evicted)
        return ((service, agent) if admitted else (OTHER, OTHER)), evicted

    def admit(self, signal: Signal, now: float) -> Admitted:
        """The labels to use for a signal."""
        agent, evicted_agent = self.admit_agent(signal.service, signal.agent, now)
        admitted, evicted = self._evaluators.admit(signal.evaluator, now)
        if evicted is not None:
            self._remove(lambda each: each.evaluator == evicted)
        overflows = [
            *(["agent"] if agent == (OTHER, OTHER) else []),
            *(["evaluator"] if not admitted else []),
        ]
        labels = Labels(*agent, signal.evaluator if admitted else OTHER, signal.scope)
        return Admitted(labels, evicted_agent, evicted, tuple(overflows))

    def take(
        self,
        signal: Signal,
        labels: Labels,
        position: Position,
        time: float,
        *,
        first: bool,
        start: int = 0,
    ) -> None:
        """Take in the signal at `position`, written at log time `time`.

        Windows take final scores and those of open sessions; the detector takes each subject's first final score.
        `start` is that of the trace that was scored, unix nanoseconds; 0: it is not known.
        A session counts for one agent: the one that its latest score names.

        Raises:
            Undecodable: its time cannot be read.
        """
        entry = _entry(signal, labels, start)
        is_latest = entry is None or self._withdraw_elsewhere(signal, entry, labels)
        target = self._targets.get(labels)
        if target is None:
            target = self._targets[labels] = Target(labels, self._limits)
            self._removed.discard(labels)
        if target.has_read(position):
            return
        target.mark_read(position)
        self._changed.add(labels)
        if entry is None:
            return
        objective = self._objectives(signal.evaluator)
        target.last_score = max(target.last_score, time)
        if is_latest:
            target.offer(entry, signal.agent_version or "")
        if objective is None:
            return
        if first and signal.final:
            target.feed(signal.id, entry.score, objective)
        target.settle(time, objective)

    def _withdraw_elsewhere(self, signal: Signal, entry: WindowEntry, labels: Labels) -> bool:
        """Forget a session's score under its earlier agents; False: its latest score names another agent.

        It runs for signals that were taken in before, too: a crash may have stored one agent's windows of the two.
        """
        if signal.scope != "session":
            return True
        is_latest = True
        for service, agent in (*self._agents, (OTHER, OTHER)):
            other = labels._replace(service=service, agent=agent)
            target = self._targets.get(other)
            if target is None or other == labels or service not in (signal.service, OTHER):
                continue
            withdrawn = target.withdraw_before(entry.rank, _session_name(signal, other))
            is_latest = is_latest and withdrawn is not None
            if withdrawn:
                self._changed.add(other)
        return is_latest

    def expire(self, now: float) -> None:
        """Forget sessions that had no trace for too long."""
        for labels, target in self._targets.items():
            if target.expire(now):
                self._changed.add(labels)

    def restore(self, record: WindowRecord) -> None:
        """Take a target back from its record in topic `windows`."""
        target = Target.of(record, self._limits)
        labels = target.labels
        if labels.agent != OTHER:
            self._agents.admit((labels.service, labels.agent), target.last_score)
        if labels.evaluator != OTHER:
            self._evaluators.admit(labels.evaluator, target.last_score)
        self._targets[labels] = target

    def pending(self) -> dict[bytes, bytes | None]:
        """By key, the records that topic `windows` lacks; None removes one."""
        written = {each.key: self._targets[each].encode() for each in self._changed}
        return {**{each.key: None for each in self._removed}, **written}

    def written(self) -> None:
        """The records that `pending` returned last are in the topic."""
        self._changed.clear()
        self._removed.clear()

    def objective(self, labels: Labels) -> float | None:
        """The objective of its evaluator; None when it has none."""
        return self._objectives(labels.evaluator)

    def __iter__(self) -> Iterator[Target]:
        return iter(tuple(self._targets.values()))

    def _remove(self, leaves: Callable[[Labels], bool]) -> None:
        for labels in [each for each in self._targets if leaves(each)]:
            del self._targets[labels]
            self._changed.discard(labels)
            self._removed.add(labels)


def _entry(signal: Signal, labels: Labels, start: int) -> WindowEntry | None:
    """The entry of a scored signal; None for the stand-in of a trace, which is not mixed with verdicts."""
    if signal.outcome != "scored" or signal.score is None:
        return None
    if signal.scope == "trace" and not signal.final:
        return None
    coverage = signal.coverage
    return WindowEntry(
        _session_name(signal, labels),
        unix_seconds(signal.time),
        signal.revision,
        signal.final,
        signal.id,
        signal.score,
        coverage is None or coverage.present >= MIN_COVERAGE * coverage.expected,
        start,
        signal.trace_id or "",
    )


def _session_name(signal: Signal, labels: Labels) -> str:
    """The session's name in the windows of these labels, which several services share when they are `_other`."""
    if OTHER in (labels.service, labels.agent):
        return session_key(signal.service, signal.session_id).decode()
    return signal.session_id


class LabelLimit(Generic[K]):
    """At most `limit` values keep their name; one that was not used for `idle` seconds of log time can be evicted."""

    def __init__(self, limit: int, *, idle: float = IDLE) -> None:
        self._limit = limit
        self._idle = idle
        self._used: dict[K, float] = {}

    def __iter__(self) -> Iterator[K]:
        return iter(self._used)

    def admit(self, value: K, now: float) -> tuple[bool, K | None]:
        """Whether the value keeps its name, and the idle value that was evicted for it, if any."""
        if value in self._used:
            self._used[value] = max(self._used[value], now)
            return True, None
        evicted = None
        if len(self._used) >= self._limit:
            evicted = min(self._used, key=lambda each: self._used[each])
            if now - self._used[evicted] < self._idle:
                return False, None
            del self._used[evicted]
        self._used[value] = now
        return True, evicted
