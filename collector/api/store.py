"""The index's databases, and one write transaction over them.

    traces            trace id                       TraceEntry
    session_traces    session | start | trace id     -
    sessions          session                        SessionEntry
    sessions_by_last  last | session                 -
    sessions_by_id    session id | session           -
    agents            agent                          AgentEntry
    signals           subject | evaluator, method    SignalEntry
    recent            sequence                       its key in `signals`

Every entry belongs to a session, so that forgetting a session forgets all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import lmdb
import msgspec

from collector.api import entries, keys

NAMES = (
    "traces",
    "session_traces",
    "sessions",
    "sessions_by_last",
    "sessions_by_id",
    "agents",
    "signals",
    "recent",
    "about",
)

T = TypeVar("T")
_trace = msgspec.msgpack.Decoder(entries.TraceEntry)
_session = msgspec.msgpack.Decoder(entries.SessionEntry)
_agent = msgspec.msgpack.Decoder(entries.AgentEntry)
_signal = msgspec.msgpack.Decoder(entries.SignalEntry)


class Store:
    """One LMDB environment with its databases."""

    def __init__(self, env: lmdb.Environment) -> None:
        self.env = env
        for name in NAMES:
            setattr(self, name, env.open_db(name.encode()))

    traces: lmdb._Database
    session_traces: lmdb._Database
    sessions: lmdb._Database
    sessions_by_last: lmdb._Database
    sessions_by_id: lmdb._Database
    agents: lmdb._Database
    signals: lmdb._Database
    recent: lmdb._Database
    about: lmdb._Database

    def used(self) -> int:
        """Bytes of all pages that hold something."""
        with self.env.begin() as txn:
            stats = [txn.stat(getattr(self, name)) for name in NAMES]
        return sum(
            (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]) * stat["psize"]
            for stat in stats
        )


class Reading:
    """Typed reads within one transaction."""

    def __init__(self, store: Store, txn: lmdb.Transaction) -> None:
        self.store = store
        self.txn = txn

    def trace(self, trace_id: str) -> entries.TraceEntry | None:
        """A trace by its id."""
        return self._get(trace_id.encode(), self.store.traces, _trace.decode)

    def session(self, key: bytes) -> entries.SessionEntry | None:
        """A session by its key."""
        return self._get(key, self.store.sessions, _session.decode)

    def agent(self, key: bytes) -> entries.AgentEntry | None:
        """An agent by its key."""
        return self._get(key, self.store.agents, _agent.decode)

    def signal(self, key: bytes) -> entries.SignalEntry | None:
        """A signal by its key."""
        return self._get(key, self.store.signals, _signal.decode)

    def agents(self) -> Iterator[tuple[bytes, entries.AgentEntry]]:
        """Every agent."""
        for key, value in self.txn.cursor(self.store.agents):
            yield bytes(key), _agent.decode(value)

    def signals_of(self, subject: bytes) -> Iterator[tuple[bytes, entries.SignalEntry]]:
        """The signals of one trace or session."""
        for key, value in self.under(subject, self.store.signals):
            yield key, _signal.decode(value)

    def traces_of(self, session: bytes) -> Iterator[tuple[bytes, str]]:
        """(Link, trace id) of a session's traces in order of start."""
        for key, _ in self.under(session, self.store.session_traces):
            yield key, key[keys.WIDTH + 8 :].decode()

    def under(self, prefix: bytes, database: lmdb._Database) -> Iterator[tuple[bytes, bytes]]:
        """Everything whose key begins with `prefix`, in order."""
        cursor = self.txn.cursor(database)
        if not cursor.set_range(prefix):
            return
        for found, value in cursor:
            key = bytes(found)
            if not key.startswith(prefix):
                return
            yield key, bytes(value)

    def _get(self, key: bytes, database: lmdb._Database, decode: Callable[[bytes], T]) -> T | None:
        value = self.txn.get(key, db=database)
        return None if value is None else decode(bytes(value))


def session_key(service: str, session_id: str) -> bytes:
    """Where a session stands."""
    return keys.of("session", service, session_id)


def trace_subject(trace_id: str) -> bytes:
    """Where a trace's signals stand."""
    return keys.of("trace", trace_id)


def link(entry: entries.TraceEntry) -> bytes:
    """Where a trace stands in its session: by start, then by id."""
    start = keys.number(entry.header.start_time_unix_nano)
    return entry.session + start + entry.header.trace_id.encode()
