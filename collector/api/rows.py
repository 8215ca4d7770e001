"""The rows of sessions, traces, their words and their agents' sums as the index writes them."""

import sqlite3
from collections.abc import Iterable
from operator import attrgetter

import msgspec

from collector.api.reading import Reading
from collector.api.search import text_of
from collector.api.store import AgentEntry, SessionEntry, whole
from collector.records.trace_views import TraceHeader

NEW_TRACE = """
INSERT INTO traces (session, start, revision, log_partition, log_offset, seconds, cost, input_tokens, output_tokens,
                    error, header, trace_id, id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
CHANGED_TRACE = """
UPDATE traces SET session = ?, start = ?, revision = ?, log_partition = ?, log_offset = ?, seconds = ?, cost = ?,
                  input_tokens = ?, output_tokens = ?, error = ?, header = ?
WHERE trace_id = ? AND id = ?"""
DECIDED = "UPDATE traces SET decided = ?, kept = ?, reason = ? WHERE trace_id = ?"
SUMS = """
SELECT sum(seconds), sum(cost), sum(input_tokens), sum(output_tokens), ifnull(sum(error), 0)
FROM traces INDEXED BY traces_of_session WHERE session = ?"""
_KEPT = tuple(
    each
    for each in SessionEntry.__struct_fields__
    if each not in ("service", "session_id", "agent", "agent_version", "coverage")
)
"""Fields of a session that are columns as they are."""
_kept = attrgetter(*_KEPT)
NEW_SESSION = f"""
INSERT INTO sessions (agent, coverage, {", ".join(_KEPT)}, session_id, service, id)
VALUES (?, ?, {", ".join("?" for _ in _KEPT)}, ?, ?, ?)"""  # noqa: S608 - of names of fields
CHANGED_SESSION = f"""
UPDATE sessions SET agent = ?, coverage = ?, {", ".join(f"{each} = ?" for each in _KEPT)}
WHERE session_id = ? AND service = ? AND id = ?"""  # noqa: S608 - the same
_NEW_TEXT = "INSERT INTO texts (rowid, words) VALUES (?, ?)"
_GONE_TEXT = "INSERT INTO texts (texts, rowid, words) VALUES ('delete', ?, ?)"
_REPLACE = "INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOST_TOKENS = 1 << 40
"""Of one trace: those of as many traces as a session may have add up to less than SQLite's largest whole number."""


def taken(header: TraceHeader) -> tuple[object, ...]:
    tokens = (header.tokens.input, header.tokens.output)
    counts = (None if each is None else min(_MOST_TOKENS, whole(each)) for each in tokens)
    return (header.seconds or None, header.cost_usd, *counts, int(header.status == "error"))


def columns(entry: SessionEntry, agent: int, row: int) -> tuple[object, ...]:
    """Of `NEW_SESSION` and `CHANGED_SESSION`; `row` is the session's, `agent` its agent's."""
    covered = entry.coverage
    coverage = None if covered is None else f"{covered['expected']} {covered['present']}"
    return (agent, coverage, *_kept(entry), entry.session_id, entry.service, row)


def put_texts(connection: sqlite3.Connection, traces: Iterable[tuple[int, TraceHeader]]) -> None:
    """The words of traces, by which sessions are searched."""
    connection.executemany(_NEW_TEXT, _texts(traces))


def forget_texts(connection: sqlite3.Connection, traces: Iterable[tuple[int, TraceHeader]]) -> None:
    """Of traces as the index has them until now, (row, header): FTS5 keeps no text of its own here."""
    connection.executemany(_GONE_TEXT, _texts(traces))


def _texts(traces: Iterable[tuple[int, TraceHeader]]) -> list[tuple[int, str]]:
    texts = ((row, text_of(header)) for row, header in traces)
    return [(row, text) for row, text in texts if text]


class AgentSums:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._held: dict[tuple[str, str, str], tuple[int, AgentEntry]] = {}
        self._next: int | None = None

    def count(self, session: SessionEntry, sign: int) -> int:
        """Add a session to its agent's sums, or take it out; the agent's row."""
        row, agent = self._load(session)
        if agent.sessions <= 0:  # its last session has just left: it begins again
            agent = _begin(session)
            self._held[agent.service, agent.agent, agent.agent_version or ""] = (row, agent)
        agent.sessions += sign
        agent.traces += sign * session.traces
        agent.last = max(agent.last, session.last)
        if session.reliability is not None:
            agent.scored += sign
        elif session.unscored is not None and sign > 0:
            agent.unscored = session.unscored
        return row

    def write(self) -> None:
        execute = self._reading.connection.execute
        for row, agent in self._held.values():
            if agent.sessions <= 0:
                execute("DELETE FROM agents WHERE id = ?", (row,))
            else:
                execute(_REPLACE, (row, *msgspec.structs.astuple(agent)))
        self._held.clear()

    def _load(self, session: SessionEntry) -> tuple[int, AgentEntry]:
        key = (session.service, session.agent, session.agent_version or "")
        held = self._held.get(key)
        if held is None:
            held = self._reading.agent(*key) or (self._new_row(), _begin(session))
            self._held[key] = held
        return held

    def _new_row(self) -> int:
        row = self._next
        if row is None:
            last = self._reading.connection.execute("SELECT max(id) FROM agents").fetchone()[0]
            row = (last or 0) + 1
        self._next = row + 1
        return row


def _begin(session: SessionEntry) -> AgentEntry:
    return AgentEntry(
        service=session.service, agent=session.agent, agent_version=session.agent_version
    )
