"""Which traces the backend gets: one decision of each, a while after it closed, from what the log holds. Pure.

    closed -> waits for verdicts, feedback, its session -> decided: for a reason, by share, not at all
    decided: what is late follows; one that was dropped and fails after all is sent whole

Everything here is a function of the records of one partition of `traces` in their order, so a restart, another member
or a replay decides the same. Traces wait equally long, so they are decided in the order in which they closed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from collector.config.forward import Keep
from collector.otlp.trace_state import threshold_of
from collector.records.keeping import AgentPast, Decision, KeepingState, KeptReason, agent_key

LEAST_DURATIONS = 20
"""Traces of an agent before any is slow: below that a quantile of .98 is its slowest."""
DURATIONS = 200
"""Newest traces of an agent that it is compared with: four of them are above a quantile of .98."""
MOST_AGENTS = 1000
MOST_VERSIONS = 50
"""Of an agent. The oldest are forgotten, as agents are."""
MOST_SESSIONS = 20_000
"""That fail, or that something was said of, and are remembered; the oldest are forgotten."""
MOST_DECISIONS = 200_000
"""As many closed traces as assembly remembers for late spans."""
_AT_ONCE = 0.25
"""Of the limit: so much is used as it comes. What is left is spread over the minute, by how fast traces came so far."""
_LEAST = 1.0  # seconds of a minute that say how fast they come
_RECKONED = 16
"""Traces between two reckonings of what an agent may use: each goes through all agents."""
_REST = 0.25  # traces of an agent's part that are always left: with none, what still comes would stand for nothing
_FALL = 1.5
"""How fast the share falls as a minute's limit is used up. With 1 the limit would be used up by a flood of ten times
as many, and what comes after could not be estimated; with 2 a twentieth of it would never be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTrace:
    """What decides of a trace that has closed, as its newest record says it. Ids are bytes."""

    trace_id: bytes
    offset: int
    service: str
    agent: str
    version: str | None
    session: bytes
    """16 bytes that stand for service and session."""
    duration: float
    randomness: int
    """56 bits."""
    failed: bool
    """A final score did not pass, it ended in an error, or it may run away."""
    is_other: bool
    """No agent, model or tool is seen in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A trace to be sent."""

    decision: Decision
    after: int | None = None
    """The offset of the record whose spans the backend has; None: all of them are sent."""
    is_new: bool = True
    """It counts as a trace kept; else what is late follows it."""


@dataclass(slots=True)
class _Waiting:
    trace: ClosedTrace
    due: float
    failed: bool


class Keeping:
    """The traces of one partition.

    Args:
        settings: What is kept.
        late: Seconds for which what is late follows a decision.
        partitions: Of `traces`: `per_minute` and `new_versions` are divided among them.
        state: From before.
    """

    def __init__(
        self,
        settings: Keep,
        *,
        late: float,
        partitions: int = 1,
        state: KeepingState | None = None,
    ) -> None:
        self._settings = settings
        self._late = late
        self._limit = math.inf if settings.per_minute is None else settings.per_minute / partitions
        self._first_sessions = math.ceil(settings.new_versions / partitions)
        self.state = state or KeepingState()
        self.changed: list[Decision] = []
        """Decisions that were made or changed, for who writes them."""
        self.changed_said: dict[bytes, float] = {}
        self._waiting: OrderedDict[bytes, _Waiting] = OrderedDict()
        self._by_session: dict[bytes, set[bytes]] = {}
        """Dropped traces, which are sent when their session fails."""
        for decision in self.state.decisions.values():
            self._index(decision)

    @property
    def oldest(self) -> int | None:
        """The offset of the oldest trace that waits for its decision."""
        first = next(iter(self._waiting.values()), None)
        return None if first is None else first.trace.offset

    def waits(self, trace_id: bytes) -> bool:
        return trace_id in self._waiting

    def closed(self, trace: ClosedTrace, now: float) -> list[Order]:
        """A trace has closed, or a revision of it."""
        known = self.state.decisions.get(trace.trace_id)
        if known is not None and now - known.decided <= self._late:
            return self._revised(known, trace, now)
        waiting = self._waiting.get(trace.trace_id)
        if waiting is None:
            self._waiting[trace.trace_id] = _Waiting(trace, now + self._settings.wait, trace.failed)
        else:  # the record that is read again after a restart is the first one
            waiting.trace, waiting.failed = trace, trace.failed or waiting.failed
        return []

    def failed(self, trace_id: bytes, now: float) -> list[Order]:
        """A verdict on the trace did not pass."""
        if (waiting := self._waiting.get(trace_id)) is not None:
            waiting.failed = True
            return []
        known = self.state.decisions.get(trace_id)
        return [] if known is None else self._sent_late(known, now)

    def session(self, session: bytes, now: float, *, fails: bool) -> list[Order]:
        """The newest scores of a session; one that fails brings its traces that were dropped."""
        failing = self.state.failing
        if not fails:
            failing.pop(session, None)
            return []
        failing[session] = now
        while len(failing) > MOST_SESSIONS:
            failing.pop(next(iter(failing)))
        dropped = sorted(self._by_session.get(session, ()))
        return [
            order
            for trace_id in dropped
            for order in self._sent_late(self.state.decisions[trace_id], now)
        ]

    def said(self, subject: bytes, now: float) -> list[Order]:
        """Somebody said something of a trace or a session: its traces that were dropped are sent."""
        if not self._settings.feedback:
            return []
        said = self.state.said
        said[subject] = self.changed_said[subject] = now
        while len(said) > MOST_SESSIONS:
            said.pop(next(iter(said)))
        found = {*self._by_session.get(subject, ()), *({subject} & self.state.decisions.keys())}
        decisions = self.state.decisions
        return [
            order
            for each in sorted(found)
            for order in self._sent_after_all(decisions[each], now, "feedback")
        ]

    def due(self, now: float) -> Iterator[tuple[Decision, Order | None]]:
        """Decide of the traces that have waited until `now`, in order."""
        while self._waiting:
            trace_id, waiting = next(iter(self._waiting.items()))
            if waiting.due > now:
                return
            del self._waiting[trace_id]
            decision = self._decided(waiting)
            self.apply(decision)
            yield decision, Order(decision=decision) if decision.is_kept else None

    def apply(self, decision: Decision) -> None:
        """What follows from a decision, made now or before a restart."""
        state = self.state
        before = state.decisions.get(decision.trace_id)
        self._replace(before, decision)
        oldest = next(iter(state.decisions.values()))
        while len(state.decisions) > MOST_DECISIONS or (
            oldest.decided < decision.decided - self._late and oldest is not decision
        ):
            self._forget(oldest)
            oldest = next(iter(state.decisions.values()))
        if before is not None:
            return
        past = self._past(decision)
        past.durations = [*past.durations[1 - DURATIONS :], decision.duration]
        if decision.version is not None:
            sessions = past.versions.setdefault(decision.version, [])
            if decision.session not in sessions and len(sessions) < self._first_sessions:
                sessions.append(decision.session)
            while len(past.versions) > MOST_VERSIONS:
                past.versions.pop(next(iter(past.versions)))
        self._turn_minute(decision.decided)
        agent = _agent(decision)
        if decision.is_kept or decision.reason == "per_minute":
            state.wanted[agent] = state.wanted.get(agent, 0) + 1
            if sum(state.wanted.values()) % _RECKONED == 0:
                self._reckon_part(decision.decided % 60)
        if decision.is_kept:
            state.counts[agent] = state.counts.get(agent, 0) + 1
            if (each := f"{agent}\0{decision.reason}") not in state.reasons:
                state.reasons.append(each)

    # --- one trace ---------------------------------------------------------------------------------------------------

    def _decided(self, waiting: _Waiting) -> Decision:
        trace = waiting.trace
        reason = self._reason(waiting)
        self._turn_minute(waiting.due)
        share = self._settings.others if trace.is_other else self._settings.share
        base = 1.0 if reason is not None else share
        named: str = reason or ("other" if trace.is_other else "share")
        allowed = self._allowed(agent_key(trace.service, trace.agent), named, waiting.due)
        threshold = threshold_of(base * allowed)
        is_kept = trace.randomness >= threshold
        would_be = trace.randomness >= threshold_of(base)
        return Decision(
            trace_id=trace.trace_id,
            offset=trace.offset,
            decided=waiting.due,
            reason=named if is_kept or not would_be else "per_minute",
            is_kept=is_kept,
            threshold=threshold if is_kept else 0,
            service=trace.service,
            agent=trace.agent,
            version=trace.version,
            session=trace.session,
            duration=trace.duration,
            randomness=trace.randomness,
        )

    def _reason(self, waiting: _Waiting) -> KeptReason | None:
        """Why it is kept whatever the share."""
        trace, settings = waiting.trace, self._settings
        past = self.state.agents.get(agent_key(trace.service, trace.agent)) or AgentPast()
        if settings.failed and (waiting.failed or trace.session in self.state.failing):
            return "failed"
        if settings.slow is not None and _is_slow(trace.duration, past.durations, settings.slow):
            return "slow"
        if settings.alarms and agent_key(trace.service, trace.agent) in self.state.alarms:
            return "alarm"
        if trace.version is not None and self._first_sessions:
            sessions = past.versions.get(trace.version, [])
            if trace.session in sessions or len(sessions) < self._first_sessions:
                return "new_version"
        said = self.state.said
        return "feedback" if trace.trace_id in said or trace.session in said else None

    def _revised(self, known: Decision, trace: ClosedTrace, now: float) -> list[Order]:
        if trace.offset <= known.offset:  # read again after a restart
            return []
        if not known.is_kept:
            self._put(known, offset=trace.offset)
            failed = trace.failed and self._settings.failed
            return self._sent_late(self.state.decisions[known.trace_id], now) if failed else []
        decision = self._put(known, offset=trace.offset)
        return [Order(decision=decision, after=known.offset, is_new=False)]

    def _sent_late(self, known: Decision, now: float) -> list[Order]:
        if not self._settings.failed:
            return []
        return self._sent_after_all(known, now, "failed_late")

    def _sent_after_all(self, known: Decision, now: float, reason: KeptReason) -> list[Order]:
        if known.is_kept or not 0 <= now - known.decided <= self._late:  # before: read again
            return []
        return [Order(decision=self._put(known, is_kept=True, reason=reason, threshold=0))]

    def _put(self, known: Decision, **changes: Any) -> Decision:
        decision = replace(known, **changes)
        self._replace(known, decision)
        return decision

    def _replace(self, before: Decision | None, decision: Decision) -> None:
        if before is not None:
            self._unindex(before)
        self.state.decisions[decision.trace_id] = decision
        self._index(decision)
        self.changed.append(decision)

    # --- most traces a minute ----------------------------------------------------------------------------------------

    def _allowed(self, agent: str, reason: str, now: float) -> float:
        """The share of the traces that would be kept that may be.

        It follows what is left of the limit, of an agent's part of it where there is a reason, and how many are still
        to come. So what was kept says how much it stands for. Of each agent and reason the first passes.
        """
        limit, state = self._limit, self.state
        if limit == math.inf:
            return 1.0
        by_share = reason in ("share", "other")
        if not by_share and f"{agent}\0{reason}" not in state.reasons:
            return 1.0
        total = sum(state.counts.values())
        if total >= limit:
            return 0.0
        if by_share:
            return _left(total, limit)
        return self._spread(agent, now % 60, total)

    def _spread(self, agent: str, elapsed: float, total: int) -> float:
        state, limit = self.state, self._limit
        part, used = min(max(1.0, state.part), limit), state.counts.get(agent, 0)
        if elapsed < _LEAST:
            return min(_left(used, part), _left(total, limit))
        if used < _AT_ONCE * part:
            return _left(used, part)
        coming = state.wanted.get(agent, 0) * (60 - elapsed) / elapsed
        return min(1.0, max(_REST, part - used) / max(1.0, coming))

    def _turn_minute(self, now: float) -> None:
        minute, state = int(now // 60), self.state
        if minute > state.minute:
            state.wanted_before = state.wanted if minute == state.minute + 1 else {}
            state.minute, state.counts, state.reasons, state.wanted = minute, {}, [], {}
            self._reckon_part(now % 60)

    def _reckon_part(self, elapsed: float) -> None:
        """So much that all agents together use the limit, by what they wanted in the minute before, or want now."""
        wanted = sorted(self.state.wanted_before.values())
        if sum(wanted) <= self._limit:
            more = 60 / max(_LEAST, elapsed)
            wanted = sorted(more * each for each in self.state.wanted.values())
        left, self.state.part = self._limit, math.inf
        for at, each in enumerate(wanted):
            if each > (part := left / (len(wanted) - at)):
                self.state.part = part
                return
            left -= each

    # --- bounds ------------------------------------------------------------------------------------------------------

    def forget_half(self) -> None:
        """The older half of everything, where all of it would be too much for one record."""
        for decision in list(self.state.decisions.values())[: len(self.state.decisions) // 2]:
            self._forget(decision)
        _drop_half(self.state.agents)
        _drop_half(self.state.failing)
        _drop_half(self.state.said)

    def _past(self, decision: Decision) -> AgentPast:
        agents, agent = self.state.agents, _agent(decision)
        past = agents.pop(agent, None) or AgentPast()
        agents[agent] = past
        while len(agents) > MOST_AGENTS:
            agents.pop(next(iter(agents)))
        return past

    def _index(self, decision: Decision) -> None:
        if not decision.is_kept:
            self._by_session.setdefault(decision.session, set()).add(decision.trace_id)

    def _unindex(self, decision: Decision) -> None:
        traces = self._by_session.get(decision.session)
        if traces is not None:
            traces.discard(decision.trace_id)
            if not traces:
                del self._by_session[decision.session]

    def _forget(self, decision: Decision) -> None:
        del self.state.decisions[decision.trace_id]
        self._unindex(decision)


def _drop_half(older: dict[Any, Any]) -> None:
    for key in list(older)[: len(older) // 2]:
        del older[key]


def _agent(decision: Decision) -> str:
    return agent_key(decision.service, decision.agent)


def _is_slow(duration: float, past: Iterable[float], quantile: float) -> bool:
    """Whether it is above the quantile of those before it, the nearest rank."""
    ordered = sorted(past)
    if len(ordered) < LEAST_DURATIONS:
        return False
    return duration > ordered[min(len(ordered) - 1, math.ceil(quantile * len(ordered)) - 1)]


def _left(used: int, limit: float) -> float:
    return max(0.0, 1 - used / limit) ** _FALL
