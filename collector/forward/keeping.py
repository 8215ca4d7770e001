"""Which traces the backend gets: one decision of each, a while after it closed, from what the log holds. Pure.

    closed -> waits for verdicts, feedback, its session -> decided: for a reason, by share, not at all
    decided: what is late follows; one that was dropped and fails after all is sent whole

Everything here is a function of the records of one partition of `traces` in their order, so a restart, another member
or a replay decides the same. Traces wait equally long, so they are decided in the order in which they closed.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from collector.config.forward import Keep
from collector.otlp.trace_state import threshold_of
from collector.records.keeping import (
    AgentPast,
    ClosedTrace,
    Decision,
    KeepingRecord,
    KeepingState,
    KeptReason,
)

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
_REST = 0.25  # traces of an agent's part that are always left: with none, what still comes would represent nothing
_FALL = 1.5
"""How fast the share falls as a minute's limit is used up. With 1 the limit would be used up by a flood of ten times
as many, and what comes after could not be estimated; with 2 a twentieth of it would never be used."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Order(NamedTuple):
    """A trace to be sent."""

    decision: Decision
    after: int | None = None
    """The offset of the record whose spans the backend has; None: it has none, and the trace counts as kept."""


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
        self.news = KeepingRecord()
        """What has changed, for who writes it and sets a new one."""
        self._waiting: OrderedDict[bytes, tuple[ClosedTrace, float]] = OrderedDict()
        """In the order in which they are due, and when."""
        self._by_session: dict[bytes, set[bytes]] = {}
        """Of the traces that are decided: the dropped ones are sent when their session fails."""
        for decision in self.state.decisions.values():
            self._index(decision.trace)

    def read_back(self, record: KeepingRecord) -> None:
        """What was written before a restart, behind the state."""
        state = self.state
        for decision in record.decisions:
            self.apply(decision)
        state.said |= record.said
        state.alarms = state.alarms if record.alarms is None else record.alarms
        for session, since in record.failing.items():
            if since is None:
                state.failing.pop(session, None)
            else:
                state.failing[session] = since
        self.news = KeepingRecord()

    @property
    def oldest(self) -> int | None:
        """The offset of the oldest trace that waits for its decision."""
        first = next(iter(self._waiting.values()), None)
        return None if first is None else first[0].offset

    def closed(self, trace: ClosedTrace, now: float) -> list[Order]:
        """A trace has closed, or a revision of it."""
        known = self.state.decisions.get(trace.trace_id)
        if known is not None and now - known.decided <= self._late:
            return self._revised(known, trace, now)
        due = now + self._settings.wait
        if (waiting := self._waiting.get(trace.trace_id)) is not None:
            failed, due = waiting[0].failed or trace.failed, waiting[1]
            trace = replace(trace, failed=failed)
        self._waiting[trace.trace_id] = trace, due
        return []

    def failed(self, trace_id: bytes, now: float) -> list[Order]:
        """A verdict on the trace did not pass."""
        if (waiting := self._waiting.get(trace_id)) is not None:
            self._waiting[trace_id] = replace(waiting[0], failed=True), waiting[1]
            return []
        return self._sent_after_all([trace_id], now, "failed_late")

    def session(self, session: bytes, now: float, *, fails: bool) -> list[Order]:
        """The newest scores of a session; one that fails brings its traces that were dropped."""
        failing = self.state.failing
        if fails != (session in failing):
            self.news.failing[session] = now if fails else None
        if not fails:
            failing.pop(session, None)
            return []
        _put(failing, session, now, most=MOST_SESSIONS)
        return self._sent_after_all(self._by_session.get(session, ()), now, "failed_late")

    def said(self, subject: bytes, now: float) -> list[Order]:
        """Somebody said something of a trace or a session: its traces that were dropped are sent."""
        if not self._settings.feedback:
            return []
        self.news.said[subject] = now
        _put(self.state.said, subject, now, most=MOST_SESSIONS)
        traces = {subject, *self._by_session.get(subject, ())}
        return self._sent_after_all(traces, now, "feedback")

    def alarmed(self, agents: list[str]) -> None:
        """These agents, and no others, have a fault or a drop now."""
        if agents != self.state.alarms:
            self.state.alarms = self.news.alarms = agents

    def due(self, now: float) -> Iterator[Decision]:
        """Decide of the traces that have waited until `now`, in order."""
        while self._waiting:
            trace_id, (trace, due) = next(iter(self._waiting.items()))
            if due > now:
                return
            del self._waiting[trace_id]
            decision = self._decided(trace, due)
            self.apply(decision)
            yield decision

    def apply(self, decision: Decision) -> None:
        """What follows from a decision, made now or before a restart."""
        state, trace = self.state, decision.trace
        before = state.decisions.get(trace.trace_id)
        state.decisions[trace.trace_id] = decision
        self.news.decisions.append(decision)
        if before is not None:
            return
        self._index(trace)
        oldest = next(iter(state.decisions.values()))
        while len(state.decisions) > MOST_DECISIONS or (
            oldest.decided < decision.decided - self._late and oldest is not decision
        ):
            self._forget(oldest.trace)
            oldest = next(iter(state.decisions.values()))
        agent = trace.agent_key
        past = state.agents.pop(agent, None) or AgentPast()
        _put(state.agents, agent, past, most=MOST_AGENTS)
        past.durations = [*past.durations[1 - DURATIONS :], trace.duration]
        if trace.version is not None:
            sessions = past.versions.get(trace.version, [])
            if trace.session not in sessions and len(sessions) < self._first_sessions:
                sessions.append(trace.session)
            _put(past.versions, trace.version, sessions, most=MOST_VERSIONS)
        self._turn_minute(decision.decided)
        if decision.is_kept or decision.reason == "per_minute":
            state.wanted[agent] = state.wanted.get(agent, 0) + 1
            if sum(state.wanted.values()) % _RECKONED == 0:
                self._reckon_part(decision.decided % 60)
        if decision.is_kept:
            state.counts[agent] = state.counts.get(agent, 0) + 1
            if (each := f"{agent}\0{decision.reason}") not in state.reasons:
                state.reasons.append(each)

    def _decided(self, trace: ClosedTrace, now: float) -> Decision:
        reason = self._reason(trace)
        self._turn_minute(now)
        share = self._settings.others if trace.is_other else self._settings.share
        base = 1.0 if reason is not None else share
        named: str = reason or ("other" if trace.is_other else "share")
        threshold = threshold_of(base * self._allowed(trace.agent_key, named, now))
        is_kept = trace.randomness >= threshold
        would_be = trace.randomness >= threshold_of(base)
        return Decision(
            trace,
            decided=now,
            reason=named if is_kept or not would_be else "per_minute",
            is_kept=is_kept,
            threshold=threshold if is_kept else 0,
        )

    def _reason(self, trace: ClosedTrace) -> KeptReason | None:
        """Why it is kept whatever the share."""
        settings = self._settings
        past = self.state.agents.get(trace.agent_key) or AgentPast()
        if settings.failed and (trace.failed or trace.session in self.state.failing):
            return "failed"
        if settings.slow is not None and _is_slow(trace.duration, past.durations, settings.slow):
            return "slow"
        if settings.alarms and trace.agent_key in self.state.alarms:
            return "alarm"
        if trace.version is not None and self._first_sessions:
            sessions = past.versions.get(trace.version, [])
            if trace.session in sessions or len(sessions) < self._first_sessions:
                return "new_version"
        said = self.state.said
        return "feedback" if trace.trace_id in said or trace.session in said else None

    def _revised(self, known: Decision, trace: ClosedTrace, now: float) -> list[Order]:
        if trace.offset <= known.trace.offset:  # read again after a restart
            return []
        decision = replace(known, trace=replace(trace, session=known.trace.session))
        self.apply(decision)
        if known.is_kept:
            return [Order(decision, after=known.trace.offset)]
        trace_ids = [trace.trace_id] if trace.failed else ()
        return self._sent_after_all(trace_ids, now, "failed_late")

    def _sent_after_all(
        self, trace_ids: Iterable[bytes], now: float, reason: KeptReason
    ) -> list[Order]:
        if reason == "failed_late" and not self._settings.failed:
            return []
        orders: list[Order] = []
        for trace_id in sorted(trace_ids):
            known = self.state.decisions.get(trace_id)
            if known is None or known.is_kept:
                continue
            if 0 <= now - known.decided <= self._late:  # before: it is read again
                decision = replace(known, is_kept=True, reason=reason, threshold=0)
                self.apply(decision)
                orders.append(Order(decision))
        return orders

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

    def forget_half(self) -> None:
        """The older half of everything, where all of it would be too much for one record."""
        state = self.state
        for decision in list(state.decisions.values())[: len(state.decisions) // 2]:
            self._forget(decision.trace)
        del self.news.decisions[: len(self.news.decisions) // 2]
        for each in (state.agents, state.failing, state.said):
            _bound(each, len(each) - len(each) // 2)

    def _index(self, trace: ClosedTrace) -> None:
        self._by_session.setdefault(trace.session, set()).add(trace.trace_id)

    def _forget(self, trace: ClosedTrace) -> None:
        del self.state.decisions[trace.trace_id]
        traces = self._by_session[trace.session]
        traces.discard(trace.trace_id)
        if not traces:
            del self._by_session[trace.session]


def _put(into: dict[_K, _V], key: _K, value: _V, *, most: int) -> None:
    into[key] = value
    _bound(into, most)


def _bound(of: dict[Any, Any], most: int) -> None:
    while len(of) > most:
        del of[next(iter(of))]


def _is_slow(duration: float, past: Iterable[float], quantile: float) -> bool:
    """Whether it is above the quantile of those before it, the nearest rank."""
    ordered = sorted(past)
    if len(ordered) < LEAST_DURATIONS:
        return False
    return duration > ordered[min(len(ordered) - 1, math.ceil(quantile * len(ordered)) - 1)]


def _left(used: int, limit: float) -> float:
    return max(0.0, 1 - used / limit) ** _FALL
