"""All sessions of one partition of `traces`. Pure: time is the record's, and decisions are returned as values.

record -> make_room (close what is due) -> take -> [sketches that only the log has] -> finish
restart -> restore (read `sessions` back) -> the same again

Records are taken in the order of offsets, each after the one before it is finished.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Literal

from msgspec.structs import replace

from collector.config.tree import SessionWindow
from collector.records.more import MoreRecord
from collector.records.sessions import (
    SessionAwaited,
    SessionHead,
    SessionsTopic,
    SessionTurn,
    session_key,
)
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import VerdictRecord
from collector.scoring.cached_session import AWAKE, AwakeSessions, CachedSession, Packer
from collector.scoring.effects import Change, Effects, PlacedTrace, Tombstone
from collector.scoring.more_sessions import MoreSessions
from collector.scoring.open_session import OpenSession
from collector.scoring.pending_verdicts import PendingVerdicts
from collector.scoring.rules import Rules
from collector.scoring.session_end import new_head
from collector.scoring.turn_sketches import Sketches
from evaluators.model import SessionClosed

AWAITED_COST = 4 << 10
"""Bytes that a closed session takes which waits for its verdict; no more of them wait than fit into the memory."""
PLUGIN_LAG = 15.0
"""Seconds that a session which is due waits for third parties' evaluators: the time of one (10 s) and a start of its
process. Our scores of a session must not be later for what hangs."""
Dropped = Literal["repeated", "outdated"]  # why a trace record is not scored


class OpenSessions:
    """Owner of one partition's sessions, least recently touched first."""

    def __init__(
        self,
        *,
        partition: int,
        rules: Rules,
        limits: SessionWindow,
        partitions: int = 1,
        packer: Packer | None = None,
        awake: int = AWAKE,
    ) -> None:
        """`partitions` of `traces` have equal shares of `limits.max_open`, `limits.memory` and `awake`."""
        self.partition = partition
        self._rules = rules
        self._limits = limits
        self._max_open = max(1, limits.max_open // partitions)
        self._memory = limits.memory // partitions
        # A session closes `idle` after its newest record; one without a record for `max_age` holds nothing recent.
        self._timeout = min(limits.idle, limits.max_age)
        self._reason: SessionClosed = "idle" if limits.idle <= limits.max_age else "max_age"
        self._packer = packer or Packer(rules, limits)
        self._open: OrderedDict[bytes, CachedSession] = OrderedDict()
        self._overdue: dict[bytes, CachedSession] = {}
        """Sessions past their idle time that still wait for a verdict."""
        self._closed: dict[bytes, SessionHead] = {}
        """Heads of closed sessions that are still in the log: records below their `since` are repeats."""
        self._awake = AwakeSessions(self._packer, limit=awake // partitions)
        awaited = max(1, self._memory // AWAITED_COST)
        self._more = MoreSessions()
        self._left: MoreRecord | None = None
        """Of the request by which the session was chosen that a trace has opened; stored when it is finished."""
        self._verdicts = PendingVerdicts(rules=rules, max_sessions=min(self._max_open, awaited))
        self.size = 0  # bytes of memory that the open sessions take
        self._next = 0  # the offset after the newest record that arrived
        self._now = 0.0  # the newest log time of a record that was taken, or of a tick

    def __len__(self) -> int:
        return len(self._open) + len(self._overdue)

    def restore(self, records: Iterable[SessionsTopic]) -> tuple[Change, ...]:
        """Take back the partition's sessions from the log (rule 5).

        Returns tombstones for traces whose session no longer exists, and the end of closed sessions that no judge is
        asked about any more.
        """
        heads: dict[bytes, SessionHead] = {}
        traces: defaultdict[bytes, list[SessionTurn]] = defaultdict(list)
        changes: list[Change] = []
        for record in records:
            match record:
                case SessionHead():
                    heads[session_key(record.service, record.session_id)] = record
                case SessionTurn():
                    traces[session_key(record.service, record.session_id)].append(record)
                case SessionAwaited():
                    changes += self._verdicts.restore(record)
                case MoreRecord():
                    self._more.restore(record)
        for key, head in sorted(heads.items(), key=lambda each: each[1].offset):
            if head.closed:
                self._closed[key] = head
            else:
                of_this_life = [each for each in traces[key] if each.offset >= head.since]
                self._restore_session(self._packer.session(key, head, of_this_life))
                traces[key] = [each for each in traces[key] if each.offset < head.since]
        self._verdicts.sort()
        orphans = [Tombstone(state=each) for left in traces.values() for each in left]
        return (*orphans, *changes)

    def _restore_session(self, session: OpenSession) -> None:
        self.size += session.cost
        for trace_id, time in session.pending.items():
            self._verdicts.add_trace(session.key, trace_id, time)
        held = self._open[session.key] = CachedSession(session)
        self._awake.keep(held)

    def done(self, offset: int) -> None:
        self._next = offset + 1

    def close_due(self, now: float) -> Iterator[Effects]:
        """Close the sessions that are due at this log time; a session that waits for a verdict closes with it.

        Verdicts that are too late by now are given here, through the log: the first one there wins (rule 6). For those
        of third parties' evaluators a session waits PLUGIN_LAG from the first call that finds it due: then all that the
        log holds was read.
        """
        yield from self._reach(self._next, now)
        for held in tuple(self._overdue.values()):
            if held.overdue is None:
                held.overdue = now
            elif held.overdue + PLUGIN_LAG <= now and not held.waits_for_ours:
                yield self._close(held, self._reason, since=self._next)

    def make_room(
        self, record: SummarisedTrace, *, key: bytes, offset: int, now: float
    ) -> Iterator[Effects]:
        """Before a record is taken: sessions due at its time close, and old ones to make room for it.

        Memory is charged when a trace is placed, so a record may exceed it by its own trace. A record that places
        nothing needs no room: it may be read again when later ones have been placed.
        """
        yield from self._reach(offset, now)
        session = self._open.get(key)
        if session is not None and self._is_due(session, now):
            yield from self._expire(session, since=offset)
        if self._reason_to_drop(record, key, offset) is not None:
            return
        for each in tuple(self._surplus(key)):
            yield self._close(each, "memory", since=offset)
        if self._find(key) is not None:
            return
        while len(self) >= self._max_open:
            yield self._close(next(self._by_age()), "memory", since=offset)

    def take(
        self, record: SummarisedTrace, *, key: bytes, offset: int, now: float
    ) -> PlacedTrace | Dropped:
        """Place a trace in its session, which it may open; or the reason why the record is not scored.

        Raises Undecodable: the key is not a session's.
        """
        held = self._find(key)
        if held is not None and not self._is_past(key, offset):
            session = self._awake.wake(held)
            session.seen = max(session.seen, offset)
        dropped = self._reason_to_drop(record, key, offset)
        if dropped is not None:
            return dropped
        is_new = held is None
        if held is None:
            head = new_head(key, record.summary, self._closed.get(key), now=now)
            is_sampled = self._rules.judged.samples(key)
            head, self._left = self._more.begin(head, is_sampled=is_sampled)
            held = CachedSession(self._packer.session(key, head))
        session = self._awake.wake(held)
        before = 0 if is_new else session.cost
        placed = session.take(record, offset=offset, now=now, is_new=is_new)
        self.size += session.cost - before
        self._touch(held)
        return placed

    def finish(self, placed: PlacedTrace, found: Mapping[str, Sketches]) -> Effects:
        """Score a trace that was placed; `found`: see `OpenSession.finish`."""
        held = self._open[placed.key]
        session = held.wake(self._packer)
        effects = session.finish(placed, found)
        if self._left is not None:
            effects = replace(effects, changes=(*effects.changes, self._left))
            self._left = None
        trace_id = placed.entry.turn.trace_id
        if (time := session.pending.get(trace_id)) is not None:
            self._verdicts.add_trace(placed.key, trace_id, time)
        self._awake.keep(held)
        return effects

    def want_more(self, record: MoreRecord) -> Iterator[Effects]:
        """Publishing wants more sessions of an agent to be judged."""
        if changes := tuple(self._more.take(record)):
            yield Effects(changes=changes)

    def on_verdict(
        self, record: VerdictRecord, *, key: bytes, offset: int, now: float
    ) -> Iterator[Effects]:
        """The final outcomes of a verdict in place of stand-ins, once (rule 6)."""
        yield from self._reach(offset, now)
        if record.scope == "session":
            yield from self._verdicts.on_verdict(record, key=key, offset=offset)
            return
        held = self._find(key)
        if held is None or self._is_past(key, offset):
            return
        session = self._awake.wake(held)
        session.seen = max(session.seen, offset)
        effects = session.on_verdict(record, offset=offset)
        if effects is None:
            return
        if record.subject not in session.pending:
            self._verdicts.remove_trace(key, record.subject)
        yield effects
        if key in self._overdue and not held.waits:
            yield self._close(held, self._reason, since=offset + 1)

    def close_all(self, reason: SessionClosed) -> Iterator[Effects]:
        """At the end of a recording, or of a service that will not come back: every session closes."""
        for session in [*self._overdue.values(), *self._open.values()]:
            yield self._close(session, reason, since=self._next)

    def committed(self, offset: int) -> tuple[Tombstone, ...]:
        """All is written, and no record below `offset` is read again.

        Returns the tombstones of heads of sessions that closed before it.
        """
        passed = {key: head for key, head in self._closed.items() if head.since <= offset}
        for key in passed:
            del self._closed[key]
        return tuple(
            Tombstone(state=head) for key, head in passed.items() if self._find(key) is None
        )

    def _reach(self, offset: int, now: float) -> Iterator[Effects]:
        """Close what is due at the log time of the record at this offset."""
        self._now = max(self._now, now)
        if skipped := tuple(self._verdicts.expired(now, self._pending_trace)):
            yield Effects(changes=skipped)
        due: list[CachedSession] = []
        for session in self._open.values():
            if not self._is_due(session, now):
                break
            due.append(session)
        for session in due:
            yield from self._expire(session, since=offset)

    def _expire(self, session: CachedSession, *, since: int) -> Iterator[Effects]:
        if session.waits:
            self._overdue[session.key] = self._open.pop(session.key)
        else:
            yield self._close(session, self._reason, since=since)

    def _close(self, held: CachedSession, reason: SessionClosed, *, since: int) -> Effects:
        """Records of the session below `since`, and those that it has looked at, are repeats from now on."""
        session = held.look(self._packer)
        self._open.pop(session.key, None)
        self._overdue.pop(session.key, None)
        self._awake.forget(session.key)
        self.size -= session.cost
        for trace_id in session.pending:
            self._verdicts.remove_trace(session.key, trace_id)
        since = max(since, session.seen + 1, session.head.offset + 1)
        effects, awaited = session.close(reason, since=since, now=self._now)
        if awaited is not None:
            self._verdicts.add_session(awaited)
        self._closed[session.key] = session.head
        return effects

    def _pending_trace(self, key: bytes, trace_id: str) -> SessionTurn | None:
        held = self._find(key)
        return None if held is None else held.look(self._packer).pending_trace(trace_id)

    def _find(self, key: bytes) -> CachedSession | None:
        return self._open.get(key) or self._overdue.get(key)

    def _by_age(self) -> Iterator[CachedSession]:
        return chain(self._overdue.values(), self._open.values())

    def _surplus(self, key: bytes) -> Iterator[CachedSession]:
        """The oldest sessions without which the others fit into memory; not the session of this key."""
        size = self.size
        for session in self._by_age():
            if size <= self._memory:
                return
            if session.key != key:
                size -= session.cost
                yield session

    def _reason_to_drop(self, record: SummarisedTrace, key: bytes, offset: int) -> Dropped | None:
        """Why the record places nothing; None: it places its trace."""
        if self._is_past(key, offset):
            return "repeated"
        held = self._find(key)
        if held is None:
            return None
        session = self._awake.wake(held)
        if session.holds(record, offset):
            return "repeated"
        return "outdated" if session.outdated(record) else None

    def _is_past(self, key: bytes, offset: int) -> bool:
        life = self._find(key) or self._closed.get(key)
        return life is not None and offset < life.since

    def _is_due(self, session: CachedSession, now: float) -> bool:
        return session.last + self._timeout <= now

    def _touch(self, session: CachedSession) -> None:
        session.overdue = None
        self._overdue.pop(session.key, None)
        self._open.pop(session.key, None)
        self._open[session.key] = session
