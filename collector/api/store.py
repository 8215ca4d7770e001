"""The index's databases, their keys and entries, and typed reads within one transaction.

    traces            trace id                       TraceEntry
    session_traces    session | start | trace id     -
    sessions          session                        SessionEntry
    sessions_by_last  last | session                 -
    sessions_by_id    session id | session           -
    agents            agent                          AgentEntry
    signals           subject | evaluator, method    SignalEntry
    recent            sequence                       its key in `signals`

Every entry belongs to a session, so that forgetting a session forgets all of it. Keys have parts of fixed
width, so that a prefix is a subject.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

import lmdb
import msgspec

from collector.records.trace_views import TraceHeader
from evaluators.model import Trace

KEY_WIDTH = 16
_MAX = (1 << 64) - 1


@lru_cache(maxsize=4096)
def key_of(*parts: str) -> bytes:
    """16 bytes that stand for these names."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=KEY_WIDTH).digest()


def number_key(value: float) -> bytes:
    """8 bytes in the order of the number; below 0 counts as 0."""
    return struct.pack(">Q", min(_MAX, max(0, int(value))))


def read_number_key(key: bytes) -> int:
    """The number that `number_key` wrote."""
    return struct.unpack(">Q", key[:8])[0]


def micros(seconds: float) -> int:
    """Log times are kept in whole microseconds, so that sums and orders are exact."""
    return round(seconds * 1e6)


def write_cursor(key: bytes) -> str:
    """A key as clients carry it."""
    return base64.urlsafe_b64encode(key).rstrip(b"=").decode()


def read_cursor(text: str) -> bytes:
    """The key behind a cursor.

    Raises:
        ValueError: It is none of ours.
    """
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("not a cursor") from error


EXCERPT = 2048
"""Characters of an input or output that lists and the session view show."""


class TraceEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A trace in the index; `offset` None: only its signals have arrived so far."""

    header: TraceHeader
    session: bytes
    revision: int = 0
    partition: int = 0
    offset: int | None = None


class SessionEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A session in the index. Times are log time in microseconds; scores are those of its newest signals."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None = None
    started: int | None = None
    last: int = 0
    traces: int = 0
    reliability: float | None = None
    consistency: float | None = None
    coverage: dict[str, int] | None = None
    unscored: str | None = None
    """Why it has no reliability, in plain words."""
    closed: str | None = None
    newest: int = -1
    """Offset of its newest record on `traces`: records below it are read again and change nothing."""


class AgentEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Sums over the sessions in the index of a version of an agent."""

    service: str
    agent: str
    agent_version: str | None = None
    sessions: int = 0
    traces: int = 0
    last: int = 0
    scored: int = msgspec.field(default=0, name="reliability_count")
    """Sessions that have a reliability."""
    unscored: str | None = None
    """Why the session without reliability that changed last has none."""


class SignalEntry(msgspec.Struct, kw_only=True, array_like=True):
    """A signal in the index: its place in the order of arrival, its identity, and its JSON as it arrived."""

    sequence: int
    revision: int
    partition: int
    offset: int
    evaluator: str
    session_id: str
    trace_id: str | None
    json: bytes
    final: bool = True


encode_entry = msgspec.msgpack.Encoder().encode


def excerpt(header: TraceHeader, *, content: bool) -> TraceHeader:
    """The header with its texts cut to `EXCERPT`, or without them."""
    return msgspec.structs.replace(
        header,
        input=header.input[:EXCERPT] if content and header.input else None,
        output=header.output[:EXCERPT] if content and header.output else None,
        error=header.error[:EXCERPT] if content and header.error else None,
    )


def as_trace(header: TraceHeader) -> Trace:
    """A trace whose record has expired from the log, with the fields that the index has of it."""
    fields = msgspec.structs.asdict(header)
    fields["status"] = "error" if header.status == "error" else "unset"
    return Trace(**fields, truncated=True)


T = TypeVar("T")
_trace = msgspec.msgpack.Decoder(TraceEntry)
_session = msgspec.msgpack.Decoder(SessionEntry)
_agent = msgspec.msgpack.Decoder(AgentEntry)
_signal = msgspec.msgpack.Decoder(SignalEntry)


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


NAMES = tuple(Store.__annotations__)
"""Of the databases."""


class Reading:
    """Typed reads within one transaction."""

    def __init__(self, store: Store, txn: lmdb.Transaction) -> None:
        self.store = store
        self.txn = txn

    def trace(self, trace_id: str) -> TraceEntry | None:
        """A trace by its id."""
        return self._get(trace_id.encode(), self.store.traces, _trace.decode)

    def session(self, key: bytes) -> SessionEntry | None:
        """A session by its key."""
        return self._get(key, self.store.sessions, _session.decode)

    def agent(self, key: bytes) -> AgentEntry | None:
        """An agent by its key."""
        return self._get(key, self.store.agents, _agent.decode)

    def signal(self, key: bytes) -> SignalEntry | None:
        """A signal by its key."""
        return self._get(key, self.store.signals, _signal.decode)

    def agents(self) -> Iterator[tuple[bytes, AgentEntry]]:
        """Every agent."""
        for key, value in self.txn.cursor(self.store.agents):
            yield bytes(key), _agent.decode(value)

    def signals_of(self, subject: bytes) -> Iterator[tuple[bytes, SignalEntry]]:
        """The signals of one trace or session."""
        for key, value in self.under(subject, self.store.signals):
            yield key, _signal.decode(value)

    def traces_of(self, session: bytes) -> Iterator[tuple[bytes, str]]:
        """(Link, trace id) of a session's traces in order of start."""
        for key, _ in self.under(session, self.store.session_traces):
            yield key, key[KEY_WIDTH + 8 :].decode()

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
    return key_of("session", service, session_id)


def trace_subject(trace_id: str) -> bytes:
    """Where a trace's signals stand."""
    return key_of("trace", trace_id)


def link(entry: TraceEntry) -> bytes:
    """Where a trace stands in its session: by start, then by id."""
    start = number_key(entry.header.start_time_unix_nano)
    return entry.session + start + entry.header.trace_id.encode()
