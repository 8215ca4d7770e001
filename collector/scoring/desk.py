"""All sessions of one partition of `traces`. Pure: time is the record's, what it decides comes back as values.

record -> clear_the_way (close what was due) -> take -> [outcomes] -> finish
restart -> restore (read `sessions` back) -> the same again
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

from collector.errors import Undecodable
from collector.log import SESSIONS, New
from collector.records import (
    SessionHead,
    SessionsTopic,
    SessionTurn,
    TraceRecord,
    VerdictRecord,
    session_key,
)
from collector.scoring.effects import Effects, Scored, SessionClosed, Task
from collector.scoring.open_session import Bounds, OpenSession, turn_key
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
        self._next = 0
        """The offset after the newest record that was looked at."""

    def __len__(self) -> int:
        return len(self._open) + len(self._due)

    def restore(self, records: Iterable[SessionsTopic]) -> tuple[New, ...]:
        """Take back what the log holds of the partition's sessions (rule 5); returns tombstones of what is nobody's."""
        heads: dict[bytes, SessionHead] = {}
        turns: list[SessionTurn] = []
        for record in records:
            if isinstance(record, SessionTurn):
                turns.append(record)
            else:
                heads[session_key(record.service, record.session_id)] = record
        for key, head in sorted(heads.items(), key=lambda each: each[1].offset):
            if head.closed:
                self._closed[key] = head.since
            else:
                self._open[key] = self._session(key, head)
        return tuple(self._put_back(turns))

    def accepts(self, key: bytes, offset: int, now: float) -> bool:
        """Whether the record may be taken now, or only after the outcomes that are under way."""
        if key in self._in_flight:
            return False
        if any(self._is_due(self._open[each], now) for each in self._in_flight):
            return False
        opens = self._find(key) is None and not self._is_past(key, offset)
        return not (opens and len(self) >= self._max_open and self._oldest.key in self._in_flight)

    def close_due(self, now: float) -> Iterator[Effects]:
        """Close what was due at this log time; a session that waits for a verdict closes with it."""
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
        return self._open[task.key].finish(task, outcomes, reruns)

    def on_verdict(self, record: VerdictRecord) -> Iterator[Effects]:
        """What the judge said: final outcomes in place of stand-ins. No judge yet: nothing follows."""
        return iter(())

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
        effects = session.close(reason, since=max(self._next, session.head.offset + 1))
        self._closed[session.key] = session.head.since
        return effects

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
        service, session_id = _split(key)
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


def _split(key: bytes) -> tuple[str, str]:
    """Service and session id: a revised trace stays where its key says, whatever it says itself."""
    service, mark, session_id = key.partition(b"\0")
    if not mark:
        raise Undecodable("the key of a trace record is not a session key")
    try:
        return service.decode(), session_id.decode()
    except UnicodeDecodeError as error:
        raise Undecodable("the key of a trace record is not UTF-8") from error
