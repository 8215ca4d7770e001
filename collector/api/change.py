"""One write transaction on the index: records in, entries kept consistent.

What is touched is held until `finish`, which writes each entry once.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from collector.api.evaluation_table import EvaluationTable
from collector.api.feedback_table import FeedbackTable
from collector.api.outcomes import OutcomeTable
from collector.api.packing import Packing
from collector.api.reading import Reading
from collector.api.rows import (
    CHANGED_SESSION,
    CHANGED_TRACE,
    DECIDED,
    NEW_SESSION,
    NEW_TRACE,
    SUMS,
    AgentSums,
    columns,
    forget_texts,
    put_texts,
    taken,
)
from collector.api.session_news import (
    advance,
    is_shown,
    log_micros,
    note_scores,
    takes_its_place,
)
from collector.api.signal_table import StoredSignals
from collector.api.store import (
    SessionEntry,
    SignalEntry,
    TraceRow,
    micros,
    session_subject,
    trace_subject,
    whole,
)
from collector.log.port import Position
from collector.records.keeping import Decision
from collector.records.signal_batch import SignalHeader, SubjectHeader
from collector.records.trace_views import ListedTrace, TraceHeader
from collector.records.traces import SessionRecord


@dataclass(slots=True)
class _ChangedSession:
    """A session that is touched; `before` None: the index did not have it."""

    row: int
    before: SessionEntry | None
    after: SessionEntry


class IndexChange(Reading):
    """Used once; the caller begins and ends its transaction."""

    def __init__(self, connection: sqlite3.Connection, packing: Packing) -> None:
        super().__init__(connection, packing)
        self._sessions: dict[int, _ChangedSession] = {}
        self._names: dict[tuple[str, str], _ChangedSession] = {}
        self._rows: dict[str, TraceRow] = {}
        self._missing: set[str] = set()  # traces that were looked for, and are not in the index
        self._unnamed: set[tuple[str, str]] = set()  # the same of sessions
        self._new: dict[str, TraceHeader] = {}
        self._changed: dict[str, TraceHeader] = {}
        self._decided: list[tuple[object, ...]] = []
        self._signals = StoredSignals(self)
        self._outcomes = OutcomeTable(connection)
        self.feedback = FeedbackTable(connection)
        self.evaluations = EvaluationTable(connection)
        self._owners: dict[int, int] = {}  # by subject with a new signal, the row of its session
        self._summed: set[int] = set()  # rows of sessions whose traces change
        self._agents = AgentSums(self)
        self._next_session = _next(connection, "SELECT max(id) FROM sessions")
        self._next_trace = _next(connection, "SELECT max(id) FROM traces")

    def look_up(
        self, traces: Iterable[str], sessions: Iterable[tuple[str, str]], *, signals: bool
    ) -> None:
        """Read what changes to these traces and sessions (service, id) need, with few statements.

        `signals`: theirs too. What is not looked up is read when it is asked for.
        """
        names = {*traces} - self._rows.keys() - self._missing
        self._missing |= names
        for trace_id, row in self.trace_rows(names):
            self._rows[trace_id] = row
            self._missing.discard(trace_id)
        wanted = {*sessions} - self._names.keys() - self._unnamed
        self._unnamed |= wanted
        for row, session in self.sessions_of_ids({session_id for _, session_id in wanted}):
            if (session.service, session.session_id) in wanted:
                self._hold(row, session, msgspec.structs.replace(session))
        if signals:
            found = [trace_subject(self._rows[each].id) for each in names if each in self._rows]
            held = [self._names[each].row for each in wanted if each in self._names]
            self._signals.load([*found, *map(session_subject, held)])

    def take_trace(self, seen: ListedTrace, position: Position) -> None:
        """Keep a trace; an older revision, or the same record again, changes nothing."""
        header = seen.trace
        old = self._row_of(header.trace_id)
        if not is_shown(
            seen, position, old, is_other=old is not None and not self._is_in(old, header)
        ):
            return
        session = self._load(header)
        is_new = old is None or old.offset is None
        self._place(header, old, session, seen.revision, position)
        advance(session.after, seen, position, reopens=is_new)

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Note whether traces are forwarded, and why."""
        self._decided += [
            (micros(each.decided), each.is_kept, each.reason, each.trace.trace_id.hex())
            for each in decisions
        ]

    def close_session(self, seen: SessionRecord, position: Position) -> None:
        """Note why a session closed, unless it has gone on since."""
        held = self._find(seen.service, seen.session_id)
        if held is not None and position.offset > held.after.newest:
            held.after.closed, held.after.newest = seen.closed, position.offset

    def take_signals(
        self,
        subject: SubjectHeader,
        headers: Sequence[SignalHeader],
        jsons: Sequence[bytes],
        partition: int,
        first: int,
    ) -> list[SignalEntry]:
        """Keep the signals that are the newest of their (service, scope, subject, evaluator, method); those.

        They are in a partition, from offset `first` on.
        """
        session: _ChangedSession | None = None
        if subject.scope == "trace" and subject.trace_id is not None:
            trace_id = subject.trace_id
            trace = self._row_of(trace_id) or self._expect_trace(subject, trace_id)
            at = trace_subject(trace.id)
            self._owners[at] = trace.session
        else:
            session = self._load(subject)
            at = session_subject(session.row)
            self._owners[at] = session.row
        slots = self._signals.of(at)
        kept: list[SignalEntry] = []
        for offset, (header, json) in enumerate(zip(headers, jsons, strict=True), first):
            slot = f"{subject.scope}\0{header.method}\0{header.evaluator}\0{subject.service}"
            old = slots.get(slot)
            if old is not None and not takes_its_place(subject, header, partition, offset, old):
                continue
            entry = slots[slot] = SignalEntry(
                slot,
                self._signals.next_sequence(at),
                subject.revision,
                partition,
                offset,
                header.evaluator,
                subject.session_id,
                header.final,
                json,
            )
            if session is not None:
                note_scores(session.after, subject, header, json)
            kept.append(entry)
        return kept

    def trim(self, max_traces: int) -> tuple[int, int]:
        """Forget the oldest traces of touched sessions that hold too many; (traces, signals) gone."""
        traces = signals = 0
        for held in self._sessions.values():
            surplus = held.after.traces - max_traces
            if surplus <= 0:
                continue
            self._write_traces()
            select = "SELECT id FROM traces WHERE session = ? ORDER BY start, trace_id LIMIT ?"
            oldest = [row for (row,) in self.connection.execute(select, (held.row, surplus))]
            signals += self._drop_traces(oldest)
            self._summed.add(held.row)
            traces += len(oldest)
            held.after.traces -= len(oldest)
        return traces, signals

    def finish(self) -> None:
        self._write_traces()
        self.connection.executemany(DECIDED, self._decided)
        self._outcomes.write(
            [(self._owners[each], each, signals) for each, signals in self._signals.changed()]
        )
        self._sum_up()
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
                (new if before is None else changed).append(columns(after, agent, held.row))
            else:
                self._signals.drop(session_subject(held.row))
                self.connection.execute("DELETE FROM sessions WHERE id = ?", (held.row,))
        self.connection.executemany(NEW_SESSION, new)
        self.connection.executemany(CHANGED_SESSION, changed)
        self._signals.write()
        self._agents.write()
        self.feedback.wake(sessions=self._names)
        self.evaluations.wake(sessions=self._names)

    def evict_oldest(self, count: int) -> tuple[int, int, int]:
        """Forget the sessions that have been quiet the longest; (sessions, traces, signals) gone."""
        select = "SELECT id FROM sessions ORDER BY last, id LIMIT ?"
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

    def _is_in(self, row: TraceRow, header: TraceHeader) -> bool:
        held, named = self._held(row.session), (header.service, header.session_id)
        return held is None or (held.after.service, held.after.session_id) == named

    def _row_of(self, trace_id: str) -> TraceRow | None:
        row = self._rows.get(trace_id)
        if row is None and trace_id not in self._missing:
            row = self.trace_row(trace_id)
            if row is not None:
                self._rows[trace_id] = row
        return row

    def _expect_trace(self, header: SubjectHeader, trace_id: str) -> TraceRow:
        """A signal whose trace has not been read yet still belongs to a session, else it would never leave."""
        at = log_micros(header.time)
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
        session: _ChangedSession,
        revision: int,
        position: Position | None,
    ) -> TraceRow:
        row = old
        if row is None:
            row = TraceRow(self._next_trace, session.row)
            self._next_trace += 1
            self._rows[header.trace_id] = row
            self._signals.begin(trace_subject(row.id))
        elif row.session != session.row:
            self._leave(row.session, header.trace_id)
            self._outcomes.move(trace_subject(row.id), row.session, session.row)
            self._summed.add(row.session)
        self._summed.add(session.row)
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

    def _sum_up(self) -> None:
        for row in self._summed:
            held = self._held(row)
            if held is not None:
                after = held.after
                found = self.connection.execute(SUMS, (row,)).fetchone()
                after.seconds, after.cost, after.input_tokens, after.output_tokens = found[:4]
                after.errors = found[4]
        for row in self._summed.union(self._owners.values()):
            held = self._held(row)
            if held is not None:
                held.after.failed = self._outcomes.failed_in(row)
        self._summed.clear()

    def _write_traces(self) -> None:
        pack = self.packing.pack
        for statement, waiting in ((NEW_TRACE, self._new), (CHANGED_TRACE, self._changed)):
            written: list[tuple[object, ...]] = []
            for trace_id, header in waiting.items():
                row = self._rows[trace_id]
                place = (row.session, row.start, row.revision, row.partition, row.offset)
                written.append((*place, *taken(header), pack(header), trace_id, row.id))
            if waiting is self._changed:
                before = self.headers([self._rows[each].id for each in waiting])
                forget_texts(self.connection, before)
            self.connection.executemany(statement, written)
            now = ((self._rows[each].id, header) for each, header in waiting.items())
            put_texts(self.connection, now)
            if waiting:
                self.feedback.wake(traces=waiting.values())
                self.evaluations.wake(traces=waiting.values())
            waiting.clear()

    def _drop_traces(self, rows: list[int]) -> int:
        forget_texts(self.connection, self.headers(rows))
        self.connection.executemany("DELETE FROM traces WHERE id = ?", [(row,) for row in rows])
        self._rows.clear()
        self._missing.clear()
        return sum(self._signals.drop(trace_subject(row)) for row in rows)

    def _load(self, header: TraceHeader | SubjectHeader) -> _ChangedSession:
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
        self._signals.begin(session_subject(self._next_session - 1))
        return self._hold(self._next_session - 1, None, begun)

    def _find(self, service: str, session_id: str) -> _ChangedSession | None:
        held = self._names.get((service, session_id))
        if held is not None:
            return held
        if (service, session_id) in self._unnamed:
            return None
        found = self.session_by_name(service, session_id)
        if found is None:
            return None
        return self._hold(found[0], found[1], msgspec.structs.replace(found[1]))

    def _held(self, row: int) -> _ChangedSession | None:
        if row not in self._sessions:
            found = self.session(row)
            if found is None:
                return None
            return self._hold(row, found, msgspec.structs.replace(found))
        return self._sessions[row]

    def _hold(self, row: int, before: SessionEntry | None, after: SessionEntry) -> _ChangedSession:
        held = self._sessions[row] = _ChangedSession(row, before, after)
        self._names[after.service, after.session_id] = held
        return held


def _next(connection: sqlite3.Connection, highest: str) -> int:
    return (connection.execute(highest).fetchone()[0] or 0) + 1
