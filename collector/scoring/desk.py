"""All sessions of one partition of `traces`. Pure: time is the record's, what it decides comes back as values.

record -> clear_the_way (close what was due) -> take -> [outcomes] -> finish
restart -> restore (read `sessions` back) -> the same again
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

from collector.log.port import SESSIONS, New
from collector.records.session_key import session_key, split_session_key, turn_key
from collector.records.sessions import SessionAwaited, SessionHead, SessionsTopic, SessionTurn
from collector.records.traces import TraceRecord, VerdictRecord
from collector.scoring.awaited import Awaited
from collector.scoring.effects import Effects, Scored, SessionClosed, Task
from collector.scoring.open_session import Bounds, OpenSession
from collector.scoring.ports import Rules
from evaluators.model import Outcome

Passed = Literal["repeated", "outdated"]


class Limits(Bounds, Protocol):
    """`windows.session`."""

    @property
    def idle(self) -> float:
        """Seconds of log time without a new trace after which a session closes."""
        ...


class Desk:
    """Owner of one partition's sessions, oldest touched first."""

    def __init__(
        self, *, partition: int, rules: Rules, limits: Limits, max_open: int, redact: bool = False
    ) -> None:
        self.partition = partition
        self._rules = rules
        self._limits = limits
        self._max_open = max_open
        self._redact = redact
        self._patience = min(limits.idle, limits.max_age)
        self._why: SessionClosed = "idle" if limits.idle <= limits.max_age else "max_age"
        self._open: OrderedDict[bytes, OpenSession] = OrderedDict()
        self._due: dict[bytes, OpenSession] = {}
        """Open, due, and kept by an outcome that is not final yet."""
        self._closed: dict[bytes, int] = {}
        """Closed, their head not yet removed from the log: the offset below which their records are repeats."""
        self._in_flight: set[bytes] = set()
        self._awaited = Awaited(partition=partition, rules=rules, most=max_open, redact=redact)
        self._next = 0
        """The offset after the newest record that was looked at."""
        self._now = 0.0
        """The newest log time that was heard of."""

    def __len__(self) -> int:
        return len(self._open) + len(self._due)

    def restore(self, records: Iterable[SessionsTopic]) -> tuple[New, ...]:
        """Take back what the log holds of the partition's sessions (rule 5); returns tombstones of what is nobody's."""
        heads: dict[bytes, SessionHead] = {}
        gone: list[New] = []
        turns: list[SessionTurn] = []
        for record in records:
            if isinstance(record, SessionTurn):
                turns.append(record)
            elif isinstance(record, SessionAwaited):
                gone += self._awaited.restore(record)
            else:
                heads[session_key(record.service, record.session_id)] = record
        for key, head in sorted(heads.items(), key=lambda each: each[1].offset):
            if head.closed:
                self._closed[key] = head.since
            else:
                self._open[key] = self._session(key, head)
        tombstones = (*self._put_back(turns), *gone)
        for session in self._open.values():
            self._await(session)
        self._awaited.sort()
        return tombstones

    def accepts(self, key: bytes, offset: int, now: float) -> bool:
        """Whether the record may be taken now, or only after the outcomes that are under way."""
        if key in self._in_flight:
            return False
        if any(self._is_due(self._open[each], now) for each in self._in_flight):
            return False
        opens = self._find(key) is None and not self._is_past(key, offset)
        return not (opens and len(self) >= self._max_open and self._oldest.key in self._in_flight)

    def close_due(self, now: float) -> Iterator[Effects]:
        """Close what was due at this log time; a session that waits for a verdict closes with it.

        Verdicts that are too late by now are given here, through the log: the first one there wins (rule 6).
        """
        self._now = max(self._now, now)
        if lapsed := tuple(self._awaited.lapsed(now, self._waits_for)):
            yield Effects(state=lapsed)
        while self._open:
            session = next(iter(self._open.values()))
            if not self._is_due(session, now):
                return
            if session.waiting:
                self._due[session.key] = self._open.pop(session.key)
            else:
                yield self._close(session, self._why)

    def clear_the_way(self, key: bytes, offset: int, now: float) -> Iterator[Effects]:
        """What comes before a record: sessions due at its time close, and the oldest when it would be one too many."""
        self._next = offset
        yield from self.close_due(now)
        if self._find(key) is not None or self._is_past(key, offset):
            return
        while len(self) >= self._max_open:
            yield self._close(self._oldest, "memory")

    def take(self, record: TraceRecord, *, key: bytes, offset: int, now: float) -> Task | Passed:
        """Place a trace in its session, opening it if need be; or why the record is passed over.

        Raises:
            Undecodable: the key is not a session's.
        """
        self._next = offset + 1
        if self._is_past(key, offset):
            return "repeated"
        session = self._find(key)
        if session is not None and session.holds(record, offset):
            return "repeated"
        if session is not None and session.outdated(record):
            return "outdated"
        is_new = session is None
        session = session or self._session(key, self._new_head(key, record, offset, now))
        task = session.take(record, offset=offset, now=now, is_new=is_new)
        self._touch(session)
        self._in_flight.add(key)
        return task

    def finish(self, task: Task, outcomes: Sequence[Outcome], reruns: Sequence[Scored]) -> Effects:
        """The outcomes of a task, and of those of its reruns that could be read back."""
        self._in_flight.discard(task.key)
        session = self._open[task.key]
        effects = session.finish(task, outcomes, reruns)
        trace_id = task.record.trace.trace_id
        if (placed_at := session.waiting.get(trace_id)) is not None:
            self._awaited.trace(task.key, trace_id, placed_at)
        return effects

    def on_verdict(
        self, record: VerdictRecord, *, key: bytes, offset: int, now: float
    ) -> Iterator[Effects]:
        """What the judge said: final outcomes in place of stand-ins, once (rule 6)."""
        self._next = offset
        yield from self.close_due(now)
        self._next = offset + 1
        if record.scope == "session":
            yield from self._awaited.on_verdict(record, key=key, offset=offset)
            return
        session = self._find(key)
        if session is None or self._is_past(key, offset):
            return
        effects = session.on_verdict(record, offset=offset)
        if effects is None:
            return
        yield effects
        if record.subject not in session.waiting:
            self._awaited.forget(key, record.subject)
        if key in self._due and not session.waiting:
            yield self._close(session, self._why)

    def close_all(self, reason: SessionClosed) -> Iterator[Effects]:
        """At the end of a recording, or of a service that will not come back: every session closes."""
        for session in [*self._due.values(), *self._open.values()]:
            yield self._close(session, reason)

    def committed(self, offset: int) -> tuple[New, ...]:
        """Nothing below `offset` is read again: the heads of sessions that closed before it may go."""
        passed = [key for key, since in self._closed.items() if since <= offset]
        for key in passed:
            del self._closed[key]
        return tuple(self._tombstone(key) for key in passed if self._find(key) is None)

    def _close(self, session: OpenSession, reason: SessionClosed) -> Effects:
        self._open.pop(session.key, None)
        self._due.pop(session.key, None)
        for trace_id in session.waiting:
            self._awaited.forget(session.key, trace_id)
        since = max(self._next, session.head.offset + 1)
        effects, awaited = session.close(reason, since=since, now=self._now)
        if awaited is not None:
            self._awaited.put_back(awaited)
        self._closed[session.key] = session.head.since
        return effects

    def _await(self, session: OpenSession) -> None:
        for trace_id, time in session.waiting.items():
            self._awaited.trace(session.key, trace_id, time)

    def _waits_for(self, key: bytes, trace_id: str) -> SessionTurn | None:
        session = self._find(key)
        return None if session is None else session.due(trace_id)

    def _put_back(self, turns: Iterable[SessionTurn]) -> Iterator[New]:
        for turn in turns:
            key = session_key(turn.service, turn.session_id)
            session = self._open.get(key)
            if session is not None and turn.offset >= session.head.since:
                session.put_back(turn)
            else:
                yield self._tombstone(turn_key(key, turn.turn.trace_id))

    def _find(self, key: bytes) -> OpenSession | None:
        return self._open.get(key) or self._due.get(key)

    @property
    def _oldest(self) -> OpenSession:
        return next(iter((self._due or self._open).values()))

    def _is_past(self, key: bytes, offset: int) -> bool:
        """Whether the record belongs to a life of its session that has ended."""
        session = self._find(key)
        return offset < (session.head.since if session else self._closed.get(key, 0))

    def _is_due(self, session: OpenSession, now: float) -> bool:
        return session.head.last + self._patience <= now

    def _touch(self, session: OpenSession) -> None:
        self._due.pop(session.key, None)
        self._open.pop(session.key, None)
        self._open[session.key] = session

    def _session(self, key: bytes, head: SessionHead) -> OpenSession:
        return OpenSession(
            key,
            head,
            rules=self._rules,
            bounds=self._limits,
            partition=self.partition,
            redact=self._redact,
        )

    def _new_head(self, key: bytes, record: TraceRecord, offset: int, now: float) -> SessionHead:
        service, session_id = split_session_key(key)
        trace = record.trace
        return SessionHead(
            service=service,
            session_id=session_id,
            session_source=trace.session_source,
            agent=trace.agent,
            agent_version=trace.agent_version,
            opened=now,
            last=now,
            offset=-1,
            since=self._closed.get(key, 0),
        )

    def _tombstone(self, key: bytes) -> New:
        return New(topic=SESSIONS, key=key, value=None, partition=self.partition)
