"""Typed reads of the index within one transaction."""

import json
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec

from collector.api.packing import Packing
from collector.api.session_list import SessionFilter, Sort, SqlValue, statement
from collector.api.store import (
    AgentEntry,
    DamagedError,
    SessionEntry,
    SignalEntry,
    TraceEntry,
    TraceRow,
    place_in,
    run_of,
    trace_subject,
)
from collector.base.errors import Undecodable
from collector.records.feedback import Feedback, decode_feedback
from collector.records.signal import rfc3339
from collector.records.trace_views import TraceHeader

Row = tuple[Any, ...]
_header = msgspec.msgpack.Decoder(TraceHeader)
_signals = msgspec.msgpack.Decoder(list[SignalEntry])

_TRACE = "SELECT id, session, start, revision, log_partition, log_offset"
_OF_AGENTS = AgentEntry.__struct_fields__
_AGENT = f"SELECT id, {', '.join(_OF_AGENTS)}"
_OF_SESSIONS = SessionEntry.__struct_fields__
# Fields are called as their columns are; an agent's names are in its own row.
_NAMED = (f"{'a' if each.startswith('agent') else 's'}.{each}" for each in _OF_SESSIONS)
_SESSION = f"SELECT s.id, {', '.join(_NAMED)} FROM sessions s JOIN agents a ON a.id = s.agent"  # noqa: S608
_EARLIER = "SELECT count(*) FROM traces WHERE session = ? AND (start, trace_id) < (?, ?)"
_LATER = _EARLIER.replace("<", ">")
_HEADERS = "SELECT id, header FROM traces"
_SIGNALS = "SELECT subject, signals FROM signals"
_PART = 32
_FEEDBACK = 200
"""That is shown of one subject."""
_SUBJECTS = 64  # whose signals are held at once while they are listed in order of arrival
_MARKS = ", ".join("?" * _PART)


class Reading:
    """Reads over one connection. Every method raises DamagedError for an entry that was overwritten on disk."""

    def __init__(self, connection: sqlite3.Connection, packing: Packing) -> None:
        self.connection = connection
        self.packing = packing
        self._execute = connection.execute

    def trace_row(self, trace_id: str) -> TraceRow | None:
        row = self._one(f"{_TRACE} FROM traces WHERE trace_id = ?", trace_id)
        return None if row is None else TraceRow(*row)

    def trace_rows(self, trace_ids: Collection[str]) -> Iterator[tuple[str, TraceRow]]:
        for some, marks in _at_once(trace_ids):
            statement = f"{_TRACE}, trace_id FROM traces WHERE trace_id IN ({marks})"
            for row in self._execute(statement, some):
                yield row[6], TraceRow(*row[:6])

    def trace(self, trace_id: str) -> TraceEntry | None:
        row = self._one(f"{_TRACE}, header FROM traces WHERE trace_id = ?", trace_id)
        return None if row is None else self._trace(row)

    def traces_of(
        self, session: int, newest: int | None = None, before: tuple[int, str] | None = None
    ) -> list[TraceEntry]:
        """A session's traces in order of start: the `newest`, else all.

        `before`: only of those that come before this place, a start and a trace id.
        """
        where = "WHERE session = ?" + ("" if before is None else " AND (start, trace_id) < (?, ?)")
        limit = -1 if newest is None else newest  # SQLite's word for no limit
        rows = self._execute(
            f"{_TRACE}, header FROM traces {where} ORDER BY start DESC, trace_id DESC LIMIT ?",
            (session, *(before or ()), limit),
        )
        return [self._trace(row) for row in rows][::-1]

    def forwarded(self, row: int) -> tuple[bool, str] | None:
        """Whether `forward.keep` sent a trace on, and why; None: that is not decided."""
        found = self._one("SELECT kept, reason FROM traces WHERE id = ? AND decided > 0", row)
        return None if found is None else (bool(found[0]), found[1])

    def forwarded_since(self, micros: int) -> list[tuple[str, str, bool, str, int]]:
        """(Service, agent, whether they were sent on, why, how many traces), the most first."""
        rows = self._execute(
            "SELECT a.service, a.agent, t.kept, t.reason, count(*) FROM traces t INDEXED BY traces_decided "
            "JOIN sessions s ON s.id = t.session JOIN agents a ON a.id = s.agent WHERE t.decided > ? "
            "GROUP BY 1, 2, 3, 4 ORDER BY 5 DESC",
            (micros,),
        )
        return [(service, agent, bool(kept), *rest) for service, agent, kept, *rest in rows]

    def around(self, trace: TraceEntry) -> tuple[int, int]:
        given = (trace.row.session, trace.row.start, trace.header.trace_id)
        before, after = (self._execute(each, given).fetchone()[0] for each in (_EARLIER, _LATER))
        return before, after

    def headers(self, rows: Collection[int]) -> Iterator[tuple[int, TraceHeader]]:
        for some, marks in _at_once(rows):
            for row, packed in self._execute(f"{_HEADERS} WHERE id IN ({marks})", some):
                yield row, self.packing.unpack(packed, _header)

    def newest_trace(self, session: int) -> TraceEntry | None:
        return next(iter(self.traces_of(session, 1)), None)

    def beside(self, trace: TraceEntry) -> tuple[str | None, str | None]:
        """The ids of the traces of its session before it and after it, in order of start."""
        given = (trace.row.session, trace.row.start, trace.header.trace_id)
        found: list[str | None] = []
        for sign, order in (("<", "DESC"), (">", "ASC")):
            where = f"WHERE session = ? AND (start, trace_id) {sign} (?, ?)"
            other = self._one(
                f"SELECT trace_id FROM traces {where} ORDER BY start {order}, trace_id {order} LIMIT 1",  # noqa: S608 - two constants
                *given,
            )
            found.append(None if other is None else other[0])
        return found[0], found[1]

    def session_by_name(self, service: str, session_id: str) -> tuple[int, SessionEntry] | None:
        where = "s.session_id = ? AND s.service = ?"
        return next(self._found_sessions(where, session_id, service), None)

    def session(self, row: int) -> SessionEntry | None:
        return next((each for _, each in self._found_sessions("s.id = ?", row)), None)

    def sessions_of_id(self, session_id: str) -> list[tuple[int, SessionEntry]]:
        return [*self._found_sessions("s.session_id = ? ORDER BY s.service", session_id)]

    def sessions_of_ids(self, session_ids: Collection[str]) -> Iterator[tuple[int, SessionEntry]]:
        for some, marks in _at_once(session_ids):
            yield from self._found_sessions(f"s.session_id IN ({marks})", *some)

    def sessions(
        self, asked: SessionFilter, sort: Sort, place: Sequence[SqlValue] | None, limit: int
    ) -> list[tuple[list[SqlValue], SessionEntry]]:
        """(Place, session) below a place, in the order of `sort`."""
        chosen = self._execute(*statement(asked, sort, place, limit)).fetchall()
        rows = json.dumps([row for row, *_ in chosen])
        found = dict(self._found_sessions("s.id IN (SELECT value FROM json_each(?))", rows))
        return [([*keys, row], found[row]) for row, *keys in chosen if row in found]

    def agents(
        self, below: bytes | None, service: str | None, agent: str | None, limit: int
    ) -> list[tuple[tuple[int, ...], AgentEntry]]:
        """(Place, agent) below the place of a cursor, the latest seen first."""
        place = place_in(below, 2)
        where = "" if place is None else " AND (last, id) < (?, ?)"
        found = self._execute(
            f"{_AGENT} FROM agents WHERE ifnull(? = service, 1) AND ifnull(? = agent, 1){where} "
            "ORDER BY last DESC, id DESC LIMIT ?",
            (service, agent, *(place or ()), limit),
        )
        return [((agent.last, row), agent) for row, agent in map(_agent, found)]

    def agent(self, service: str, agent: str, version: str) -> tuple[int, AgentEntry] | None:
        where = "WHERE service = ? AND agent = ? AND ifnull(agent_version, '') = ?"
        row = self._one(f"{_AGENT} FROM agents {where}", service, agent, version)
        return None if row is None else _agent(row)

    def signals_of(self, subject: int) -> list[SignalEntry]:
        row = self._one("SELECT signals FROM signals WHERE subject = ?", subject)
        return [] if row is None else self.packing.unpack(row[0], _signals)

    def signals_of_all(self, subjects: Collection[int]) -> Iterator[tuple[int, list[SignalEntry]]]:
        for some, marks in _at_once(subjects):
            statement = f"{_SIGNALS} WHERE subject IN ({marks})"
            for subject, packed in self._execute(statement, some):
                yield subject, self.packing.unpack(packed, _signals)

    def signals_of_traces(self, session: int) -> Iterator[SignalEntry]:
        for (row,) in self._execute("SELECT id FROM traces WHERE session = ?", (session,)):
            yield from self.signals_of(trace_subject(row))

    def feedback_of_trace(self, trace_id: str) -> list[Feedback]:
        return self._feedback("trace_id = ?", trace_id)

    def feedback_of_session(self, row: int, entry: SessionEntry) -> list[Feedback]:
        """What was said of a session and of its traces, the latest first."""
        return self._feedback(
            "(session_id = ? AND service = ?) OR trace_id IN (SELECT trace_id FROM traces WHERE session = ?)",
            entry.session_id,
            entry.service,
            row,
        )

    def has_feedback(self, ident: str, time: str) -> bool:
        row = self._one("SELECT json FROM feedback WHERE id = ?", ident)
        return row is not None and time.encode() in row[0]

    def externals(self) -> list[dict[str, Any]]:
        """The external evaluators of each agent: where they come from, how many scores came, and what they lack."""
        rows = self._execute("SELECT * FROM externals ORDER BY service, agent, evaluator LIMIT 512")
        return [_external(dict(zip(_OF_EXTERNALS, row, strict=True))) for row in rows]

    def _feedback(self, where: str, *given: object) -> list[Feedback]:
        statement = (
            f"SELECT json FROM feedback WHERE {where} ORDER BY arrived DESC LIMIT {_FEEDBACK}"  # noqa: S608 - of constants
        )
        try:
            return [decode_feedback(json) for (json,) in self._execute(statement, given)]
        except Undecodable as error:
            raise DamagedError(f"feedback is damaged: {error}") from error

    def recent(self, below: int | None) -> Iterator[SignalEntry]:
        """Signals whose sequence is below this number, the latest first."""
        return self._in_order("DESC", -1, (1 << 62 if below is None else below) - 1)

    def since(self, above: int, highest: int | None, limit: int) -> list[SignalEntry]:
        """The first signals, in order of arrival, whose sequence is above one number and not above the other."""
        last = 1 << 62 if highest is None else highest
        return list(islice(self._in_order("ASC", above, last), limit))

    def _in_order(self, order: str, above: int, last: int) -> Iterator[SignalEntry]:
        known: dict[int, Sequence[SignalEntry]] = {}
        statement = (
            f"SELECT run, subject FROM recent WHERE run BETWEEN ? AND ? ORDER BY run {order}"  # noqa: S608
        )
        for run, subject in self._execute(statement, (run_of(above), run_of(last))):
            if subject not in known:
                if len(known) > _SUBJECTS:
                    known.clear()
                known[subject] = self.signals_of(subject)
            own = (each for each in known[subject] if run_of(each.sequence) == run)
            fit = (each for each in own if above < each.sequence <= last)
            yield from sorted(fit, key=attrgetter("sequence"), reverse=order == "DESC")

    def newest_sequence(self) -> int:
        """The highest that a signal has; 0: there is none."""
        return next((each.sequence for each in self.recent(None)), 0)

    def forgotten_run(self) -> int:
        """The latest run of a signal that was evicted; -1: none was."""
        row = self._one("SELECT value FROM about WHERE name = 'forgotten'")
        return -1 if row is None else int(row[0])

    def _trace(self, row: Row) -> TraceEntry:
        return TraceEntry(row=TraceRow(*row[:6]), header=self.packing.unpack(row[6], _header))

    def _found_sessions(self, where: str, *given: object) -> Iterator[tuple[int, SessionEntry]]:
        for row in self._execute(f"{_SESSION} WHERE {where}", given):
            yield row[0], _session(row)

    def _one(self, statement: str, *given: object) -> Row | None:
        return self._execute(statement, given).fetchone()


def _at_once(wanted: Collection[object]) -> Iterator[tuple[list[object], str]]:
    """The values in parts of one size, filled up with None, so that few statements are prepared; their marks."""
    left = list(wanted)
    for first in range(0, len(left), _PART):
        some = left[first : first + _PART]
        yield some + [None] * (_PART - len(some)), _MARKS


_OF_EXTERNALS = (
    *("service", "agent", "evaluator", "name", "source", "version", "count", "failed"),
    *("undecided", "low", "high", "error", "last"),
)


def _external(row: dict[str, Any]) -> dict[str, Any]:
    missing = [row.pop("error")]
    if 0 < row["count"] - row["failed"] == row.pop("undecided"):
        missing.append(f"neither passes nor fails: set evaluations.thresholds.{row['evaluator']}")
    if row["version"] is None:
        missing.append("says no version: a new one is not told from the old")
    return {
        **row,
        "last": rfc3339(row["last"] / 1e6),
        "missing": [each for each in missing if each],
    }


def _session(row: Row) -> SessionEntry:
    fields = dict(zip(_OF_SESSIONS, row[1:], strict=True))
    if fields["coverage"] is not None:
        fields["coverage"] = coverage_in(fields["coverage"])
    try:
        return msgspec.convert(fields, SessionEntry)
    except msgspec.ValidationError as error:
        raise DamagedError(f"a session is damaged: {error}") from error


def coverage_in(text: str) -> dict[str, int]:
    """A session's coverage as its row has it. Raises DamagedError: it was overwritten on disk."""
    try:
        expected, present = map(int, text.split())
    except (AttributeError, ValueError) as error:
        raise DamagedError(f"a coverage is damaged: {error}") from error
    return {"expected": expected, "present": present}


def _agent(row: Row) -> tuple[int, AgentEntry]:
    return row[0], AgentEntry(**dict(zip(_OF_AGENTS, row[1:], strict=True)))
