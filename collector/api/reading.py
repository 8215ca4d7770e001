"""Typed reads of the index within one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from collector.api.packing import Packing
from collector.api.store import (
    AgentEntry,
    SessionEntry,
    SignalEntry,
    TraceEntry,
    TraceRow,
    place_in,
    run_of,
    trace_subject,
)
from collector.records.trace_views import TraceHeader

Row: TypeAlias = tuple[Any, ...]
_header = msgspec.msgpack.Decoder(TraceHeader)
_signals = msgspec.msgpack.Decoder(list[SignalEntry])
_coverage = msgspec.json.Decoder(dict[str, int])

_TRACE = "SELECT id, session, start, revision, log_partition, log_offset"
_AGENT = "SELECT service, agent, agent_version, sessions, traces, last, scored, unscored, id"
_SESSION = """
SELECT s.service, s.session_id, s.session_source, a.agent, a.agent_version, s.started, s.last, s.traces,
       s.reliability, s.consistency, s.coverage, s.unscored, s.closed, s.newest, s.id, s.agent
FROM sessions s JOIN agents a ON a.id = s.agent
"""
_CHOSEN = " AND s.agent IN (SELECT id FROM agents WHERE ifnull(?1 = service, 1) AND ifnull(?2 = agent, 1))"


class Reading:
    """Reads over one connection.

    Every method raises ValueError for an entry that was overwritten on disk.
    """

    def __init__(self, connection: sqlite3.Connection, packing: Packing) -> None:
        self.connection = connection
        self.packing = packing
        self._execute = connection.execute

    def trace_row(self, trace_id: str) -> TraceRow | None:
        """Where a trace stands, by its id."""
        row = self._one(f"{_TRACE} FROM traces WHERE trace_id = ?", trace_id)
        return None if row is None else TraceRow(*row)

    def trace(self, trace_id: str) -> TraceEntry | None:
        """A trace by its id."""
        row = self._one(f"{_TRACE}, header FROM traces WHERE trace_id = ?", trace_id)
        return None if row is None else self._trace(row)

    def traces_of(self, session: int) -> list[TraceEntry]:
        """A session's traces in order of start."""
        where = "FROM traces WHERE session = ? ORDER BY start, trace_id"
        return [self._trace(row) for row in self._execute(f"{_TRACE}, header {where}", (session,))]

    def session_by_name(self, service: str, session_id: str) -> tuple[int, SessionEntry] | None:
        """(Row, session) by its names."""
        row = self._one(f"{_SESSION} WHERE s.session_id = ? AND s.service = ?", session_id, service)
        return None if row is None else (row[14], _session(row))

    def session(self, row: int) -> SessionEntry | None:
        """A session by its row."""
        found = self._one(f"{_SESSION} WHERE s.id = ?", row)
        return None if found is None else _session(found)

    def sessions_of_id(self, session_id: str) -> list[tuple[int, SessionEntry]]:
        """(Row, session) of every service that has a session of this id."""
        found = self._execute(
            f"{_SESSION} WHERE s.session_id = ? ORDER BY s.service", (session_id,)
        )
        return [(row[14], _session(row)) for row in found]

    def sessions(
        self, below: bytes | None, service: str | None, agent: str | None, limit: int
    ) -> list[tuple[tuple[int, ...], SessionEntry]]:
        """(Place, session) below the place of a cursor, the latest first."""
        place = place_in(below, 3)
        where = "" if place is None else " AND (s.last, s.agent, s.id) < (?3, ?4, ?5)"
        if service is not None or agent is not None:
            where += _CHOSEN
        found = self._execute(
            f"{_SESSION} WHERE 1{where} ORDER BY s.last DESC, s.agent DESC, s.id DESC LIMIT ?6",
            (service, agent, *(place or (0, 0, 0)), limit),
        )
        return [((row[6], row[15], row[14]), _session(row)) for row in found]

    def agents(
        self, below: bytes | None, service: str | None, agent: str | None, limit: int
    ) -> list[tuple[tuple[int, ...], AgentEntry]]:
        """(Place, agent) below the place of a cursor, the latest seen first."""
        place = place_in(below, 2)
        where = "" if place is None else " AND (last, id) < (?3, ?4)"
        found = self._execute(
            f"{_AGENT} FROM agents WHERE ifnull(?1 = service, 1) AND ifnull(?2 = agent, 1){where} "
            "ORDER BY last DESC, id DESC LIMIT ?5",
            (service, agent, *(place or (0, 0)), limit),
        )
        return [((row[5], row[8]), _agent(row)) for row in found]

    def agent(self, service: str, agent: str, version: str) -> tuple[int, AgentEntry] | None:
        """(Row, agent) by its names; a version that is not known is empty."""
        where = "WHERE service = ? AND agent = ? AND ifnull(agent_version, '') = ?"
        row = self._one(f"{_AGENT} FROM agents {where}", service, agent, version)
        return None if row is None else (row[8], _agent(row))

    def signals_of(self, subject: int) -> list[SignalEntry]:
        """The signals of one trace or session."""
        row = self._one("SELECT signals FROM signals WHERE subject = ?", subject)
        return [] if row is None else self.packing.unpack(row[0], _signals)

    def signals_of_traces(self, session: int) -> Iterator[SignalEntry]:
        """The signals of all traces of a session."""
        for (row,) in self._execute("SELECT id FROM traces WHERE session = ?", (session,)):
            yield from self.signals_of(trace_subject(row))

    def recent(self, below: int | None) -> Iterator[SignalEntry]:
        """Signals whose sequence is below this number, the latest first."""
        highest = 1 << 62 if below is None else below
        known: dict[int, Sequence[SignalEntry]] = {}
        statement = "SELECT run, subject FROM recent WHERE run <= ? ORDER BY run DESC"
        for run, subject in self._execute(statement, (run_of(highest),)):
            if subject not in known:
                if len(known) > 64:
                    known.clear()
                known[subject] = self.signals_of(subject)
            own = [
                each
                for each in known[subject]
                if run_of(each.sequence) == run and each.sequence < highest
            ]
            yield from sorted(own, key=lambda each: each.sequence, reverse=True)

    def _trace(self, row: Row) -> TraceEntry:
        return TraceEntry(row=TraceRow(*row[:6]), header=self.packing.unpack(row[6], _header))

    def _one(self, statement: str, *given: object) -> Row | None:
        return self._execute(statement, given).fetchone()


def _session(row: Row) -> SessionEntry:
    service, session_id, source, agent, version, started, last, traces = row[:8]
    reliability, consistency, coverage, unscored, closed, newest = row[8:14]
    try:
        return SessionEntry(
            service=service + "",
            session_id=session_id + "",
            session_source=source + "",
            agent=agent + "",
            agent_version=version,
            started=started,
            last=last + 0,
            traces=traces + 0,
            reliability=reliability,
            consistency=consistency,
            coverage=None if coverage is None else _coverage.decode(coverage),
            unscored=unscored,
            closed=closed,
            newest=newest + 0,
        )
    except (TypeError, msgspec.DecodeError) as error:
        raise ValueError(f"a session is damaged: {error}") from error


def _agent(row: Row) -> AgentEntry:
    service, agent, version, sessions, traces, last, scored, unscored, _ = row
    return AgentEntry(
        service=service,
        agent=agent,
        agent_version=version,
        sessions=sessions,
        traces=traces,
        last=last,
        scored=scored,
        unscored=unscored,
    )
