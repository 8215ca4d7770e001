"""One write transaction on the index: records in, entries kept consistent.

What is touched is held until `finish`, which writes each entry once.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import msgspec

from collector.api.agent_sums import AgentSums
from collector.api.held_signals import HeldSignals
from collector.api.packing import Packing
from collector.api.reading import Reading
from collector.api.store import (
    SessionEntry,
    SignalEntry,
    TraceRow,
    micros,
    session_subject,
    trace_subject,
    whole,
)
from collector.api.unscored import why_unscored
from collector.log.port import Position
from collector.records.signal import HEADLINES, SignalHeader
from collector.records.trace_views import ListedTrace, TraceHeader
from collector.records.traces import SessionRecord


@dataclass(slots=True)
class _Held:
    """A session that is touched; `before` None: the index did not have it."""

    row: int
    before: SessionEntry | None
    after: SessionEntry


class Change(Reading):
    """Used once; the caller begins and ends its transaction."""

    def __init__(self, connection: sqlite3.Connection, packing: Packing) -> None:
        super().__init__(connection, packing)
        self._sessions: dict[int, _Held] = {}
        self._names: dict[tuple[str, str], _Held] = {}
        self._rows: dict[str, TraceRow] = {}
        self._new: dict[str, TraceHeader] = {}
        self._changed: dict[str, TraceHeader] = {}
        self._signals = HeldSignals(self)
        self._agents = AgentSums(self)
        self._arriving: tuple[str, str | None, str, str] | None = None
        self._arriving_at = 0
        self._slots: dict[str, SignalEntry] = {}
        self._session: _Held | None = None
        self._next_session = _next(connection, "SELECT max(id) FROM sessions")
        self._next_trace = _next(connection, "SELECT max(id) FROM traces")

    # --- traces ---

    def take_trace(self, seen: ListedTrace, position: Position) -> None:
        """Keep a trace; an older revision, or the same record again, changes nothing."""
        header = seen.trace
        old = self._row_of(header.trace_id)
        if old is not None and not supersedes(seen.revision, position, old):
            return
        session = self._load(header)
        is_new = old is None or old.offset is None
        self._place(header, old, session, seen.revision, position)
        _advance(session.after, seen, position, reopens=is_new)

    def close_session(self, seen: SessionRecord, position: Position) -> None:
        """Note why a session closed, unless it has gone on since."""
        held = self._find(seen.service, seen.session_id)
        if held is not None and position.offset > held.after.newest:
            held.after.closed, held.after.newest = seen.closed, position.offset

    # --- signals ---

    def take_signal(self, header: SignalHeader, json: bytes, position: Position) -> bool:
        """Keep a signal if it is the newest of its (service, scope, subject, evaluator, method)."""
        subject = (header.scope, header.trace_id, header.session_id, header.service)
        if subject != self._arriving:
            self._arriving = subject
            self._arrive(header)
        slot = f"{header.scope}\0{header.method}\0{header.evaluator}\0{header.service}"
        old = self._slots.get(slot)
        if old is not None and not _takes_its_place(header, position, old):
            return False
        self._slots[slot] = SignalEntry(
            slot,
            self._signals.next_sequence(self._arriving_at),
            header.revision,
            position.partition,
            position.offset,
            header.evaluator,
            header.session_id,
            header.final,
            json,
        )
        if self._session is not None:
            _note_scores(self._session.after, header, json)
        return True

    # --- the end ---

    def trim(self, max_traces: int) -> tuple[int, int]:
        """Forget the oldest traces of touched sessions that hold too many; (traces, signals) gone."""
        traces = signals = 0
        for held in self._sessions.values():
            surplus = held.after.traces - max_traces
            if surplus <= 0:
                continue
            self._write_traces()
            select = "SELECT id FROM traces WHERE session = ? ORDER BY start, trace_id LIMIT ?"
            oldest = self.connection.execute(select, (held.row, surplus)).fetchall()
            signals += self._drop_traces([row for (row,) in oldest])
            traces += len(oldest)
            held.after.traces -= len(oldest)
        return traces, signals

    def finish(self) -> None:
        """Write what was touched, and what it changes for the agents."""
        self._write_traces()
        new: list[tuple[object, ...]] = []
        changed: list[tuple[object, ...]] = []
        for held in self._sessions.values():
            before, after = held.before, held.after
            if before == after:
                continue
            if before is not None:
                self._agents.count(before, -1)
            if after.traces or after.newest >= 0 or after.last:
                agent = self._agents.count(after, 1)
                (new if before is None else changed).append(_columns(held, agent))
            else:
                self._signals.drop(session_subject(held.row))
                self.connection.execute("DELETE FROM sessions WHERE id = ?", (held.row,))
        self.connection.executemany(_NEW_SESSION, new)
        self.connection.executemany(_CHANGED_SESSION, changed)
        self._signals.write()
        self._agents.write()

    def evict_oldest(self, count: int) -> tuple[int, int, int]:
        """Forget the sessions that have been quiet the longest; (sessions, traces, signals) gone."""
        select = "SELECT id FROM sessions ORDER BY last, agent, id LIMIT ?"
        rows = [row for (row,) in self.connection.execute(select, (count,))]
        traces = signals = 0
        for row in rows:
            session = self.session(row)
            if session is not None:
                self._agents.count(session, -1)
            own = self.connection.execute("SELECT id FROM traces WHERE session = ?", (row,))
            found = [trace for (trace,) in own]
            signals += self._drop_traces(found)
            signals += self._signals.drop(session_subject(row))
            traces += len(found)
        self.connection.executemany("DELETE FROM sessions WHERE id = ?", [(row,) for row in rows])
        self._agents.write()
        return len(rows), traces, signals

    # --- within ---

    def _arrive(self, header: SignalHeader) -> None:
        """Signals of this subject come now; a subject that the index does not have begins."""
        if header.scope == "trace" and header.trace_id is not None:
            trace = self._row_of(header.trace_id) or self._expect_trace(header, header.trace_id)
            self._session = None
            self._arriving_at = trace_subject(trace.id)
        else:
            self._session = self._load(header)
            self._arriving_at = session_subject(self._session.row)
        self._slots = self._signals.of(self._arriving_at)

    def _row_of(self, trace_id: str) -> TraceRow | None:
        row = self._rows.get(trace_id)
        if row is None:
            row = self.trace_row(trace_id)
            if row is not None:
                self._rows[trace_id] = row
        return row

    def _expect_trace(self, header: SignalHeader, trace_id: str) -> TraceRow:
        """A signal whose trace has not been read yet still belongs to a session, else it would never leave."""
        at = _micros(header.time)
        expected = TraceHeader(
            trace_id=trace_id,
            service=header.service,
            agent=header.agent,
            agent_version=header.agent_version,
            session_id=header.session_id,
            session_source=header.session_source,
            start_time_unix_nano=at * 1000,
            end_time_unix_nano=at * 1000,
        )
        session = self._load(header)
        session.after.last = max(session.after.last, whole(at))
        return self._place(expected, None, session, 0, None)

    def _place(
        self,
        header: TraceHeader,
        old: TraceRow | None,
        session: _Held,
        revision: int,
        position: Position | None,
    ) -> TraceRow:
        """Write the trace at its place, and count it in its session."""
        row = old
        if row is None:
            row = TraceRow(self._next_trace, session.row)
            self._next_trace += 1
            self._rows[header.trace_id] = row
        elif row.session != session.row:
            self._leave(row.session, header.trace_id)
        if old is None or row.session != session.row:
            session.after.traces += 1
        row.session, row.start = session.row, whole(header.start_time_unix_nano)
        if position is not None:
            row.revision, row.partition = whole(revision), position.partition
            row.offset = position.offset
        is_new = old is None or header.trace_id in self._new
        (self._new if is_new else self._changed)[header.trace_id] = header
        return row

    def _leave(self, session: int, trace_id: str) -> None:
        held = self._held(session)
        if held is None:
            return
        left = held.after
        left.traces -= 1
        if not left.traces and left.newest < 0 and left.session_id == trace_id:
            left.last = 0  # it named no session while it was open: it was none of its own

    def _write_traces(self) -> None:
        pack = self.packing.pack
        for statement, waiting in ((_NEW_TRACE, self._new), (_CHANGED_TRACE, self._changed)):
            written: list[tuple[object, ...]] = []
            for trace_id, header in waiting.items():
                row = self._rows[trace_id]
                place = (row.session, row.start, row.revision, row.partition, row.offset)
                written.append((*place, pack(header), trace_id, row.id))
            self.connection.executemany(statement, written)
            waiting.clear()

    def _drop_traces(self, rows: list[int]) -> int:
        """Forget traces and their signals; how many signals."""
        self.connection.executemany("DELETE FROM traces WHERE id = ?", [(row,) for row in rows])
        self._rows.clear()
        return sum(self._signals.drop(trace_subject(row)) for row in rows)

    def _load(self, header: TraceHeader | SignalHeader) -> _Held:
        """The session, held until `finish`; `header` begins it if it is not in the index."""
        held = self._find(header.service, header.session_id)
        if held is not None:
            return held
        begun = SessionEntry(
            service=header.service,
            session_id=header.session_id,
            session_source=header.session_source,
            agent=header.agent,
            agent_version=header.agent_version,
        )
        self._next_session += 1
        return self._hold(self._next_session - 1, None, begun)

    def _find(self, service: str, session_id: str) -> _Held | None:
        held = self._names.get((service, session_id))
        if held is not None:
            return held
        found = self.session_by_name(service, session_id)
        if found is None:
            return None
        return self._hold(found[0], found[1], msgspec.structs.replace(found[1]))

    def _held(self, row: int) -> _Held | None:
        if row not in self._sessions:
            found = self.session(row)
            if found is None:
                return None
            return self._hold(row, found, msgspec.structs.replace(found))
        return self._sessions[row]

    def _hold(self, row: int, before: SessionEntry | None, after: SessionEntry) -> _Held:
        held = self._sessions[row] = _Held(row, before, after)
        self._names[after.service, after.session_id] = held
        return held


_NEW_TRACE = """
INSERT INTO traces (session, start, revision, log_partition, log_offset, header, trace_id, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_CHANGED_TRACE = """
UPDATE traces SET session = ?, start = ?, revision = ?, log_partition = ?, log_offset = ?, header = ?
WHERE trace_id = ? AND id = ?"""
_NEW_SESSION = """
INSERT INTO sessions (agent, last, started, traces, newest, session_source, reliability, consistency, coverage,
                      unscored, closed, session_id, service, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_CHANGED_SESSION = """
UPDATE sessions SET agent = ?, last = ?, started = ?, traces = ?, newest = ?, session_source = ?, reliability = ?,
                    consistency = ?, coverage = ?, unscored = ?, closed = ?
WHERE session_id = ? AND service = ? AND id = ?"""


def _next(connection: sqlite3.Connection, highest: str) -> int:
    return (connection.execute(highest).fetchone()[0] or 0) + 1


def supersedes(revision: int, position: Position, old: SignalEntry | TraceRow) -> bool:
    """The highest revision wins, then the later offset; any record wins over a trace that has none yet."""
    if old.offset is None or revision != old.revision:
        return old.offset is None or revision > old.revision
    return position.partition != old.partition or position.offset > old.offset


def _takes_its_place(head: SignalHeader, position: Position, old: SignalEntry) -> bool:
    """At equal revision the final signal wins, whichever came first."""
    if head.revision == old.revision and head.final != old.final:
        return head.final
    return supersedes(head.revision, position, old)


def _advance(
    session: SessionEntry, seen: ListedTrace, position: Position, *, reopens: bool
) -> None:
    header = seen.trace
    started = header.start_time_unix_nano // 1000
    session.started = started if session.started is None else min(session.started, started)
    session.last = max(session.last, whole(micros(seen.seen)))
    session.agent, session.agent_version = header.agent, header.agent_version
    session.session_source = header.session_source
    if position.offset > session.newest:
        session.newest = position.offset
        session.closed = None if reopens else session.closed


def _note_scores(session: SessionEntry, header: SignalHeader, json: bytes) -> None:
    session.agent, session.agent_version = header.agent, header.agent_version
    session.last = max(session.last, whole(_micros(header.time)))
    name = HEADLINES.get(header.evaluator)
    if name is not None:
        setattr(session, name, header.score)
        session.coverage = header.coverage or session.coverage
    if name == "reliability":
        session.unscored = None if header.score is not None else why_unscored(json)


def _columns(held: _Held, agent: int) -> tuple[object, ...]:
    entry = held.after
    coverage = None if entry.coverage is None else msgspec.json.encode(entry.coverage).decode()
    return (
        agent,
        entry.last,
        entry.started,
        entry.traces,
        entry.newest,
        entry.session_source,
        entry.reliability,
        entry.consistency,
        coverage,
        entry.unscored,
        entry.closed,
        entry.session_id,
        entry.service,
        held.row,
    )


@lru_cache(maxsize=256)
def _micros(time: str) -> int:
    try:
        return micros(datetime.fromisoformat(time).timestamp())
    except ValueError:
        return 0
