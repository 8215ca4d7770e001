"""Queries of the index. Lists are newest first; a cursor is the key of the last entry that was looked at.

Every list looks at a bounded number of entries: with a filter that few entries pass, a page may be short or empty and
still have a `next`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec

from collector.api.index import Index
from collector.api.store import (
    KEY_WIDTH,
    AgentEntry,
    Reading,
    SessionEntry,
    SignalEntry,
    TraceEntry,
    key_of,
    number_key,
    read_number_key,
    session_key,
    trace_subject,
    write_cursor,
)
from collector.records.signal import rfc3339

LOOKED_AT = 5_000
_PAST_ALL = b"\xff" * 24
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list; `next` None: there is no more."""

    items: Sequence[T]
    next: str | None


@dataclass(frozen=True, slots=True)
class TraceShown:
    """A trace as the index knows it, with its signals."""

    entry: TraceEntry
    signals: Sequence[msgspec.Raw]


@dataclass(frozen=True, slots=True)
class SessionShown:
    """A session with its traces in order of start, and its own signals."""

    entry: SessionEntry
    traces: Sequence[TraceShown]
    signals: Sequence[msgspec.Raw]


class Query:
    """Reads of the index; each answers from one consistent view."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def agents(
        self,
        *,
        limit: int,
        cursor: bytes | None = None,
        service: str | None = None,
        agent: str | None = None,
    ) -> Page[AgentEntry]:
        """Versions of agents, the latest seen first."""
        with self._index.reading() as reading:
            rows = [
                (number_key(each.last) + key, each)
                for key, each in islice(reading.agents(), LOOKED_AT)
                if _fits(each, service, agent)
            ]
        rows = sorted(rows, key=lambda row: row[0], reverse=True)
        rows = [row for row in rows if row[0] < (cursor or _PAST_ALL)]
        more = write_cursor(rows[limit - 1][0]) if len(rows) > limit else None
        return Page([each for _, each in rows[:limit]], more)

    def sessions(
        self,
        *,
        limit: int,
        cursor: bytes | None = None,
        service: str | None = None,
        agent: str | None = None,
    ) -> Page[SessionEntry]:
        """Sessions, the latest first."""
        found: list[SessionEntry] = []
        looked = 0
        with self._index.reading() as reading:
            for key, _ in _backwards(reading, reading.store.sessions_by_last, cursor):
                if len(found) == limit or looked == LOOKED_AT:
                    return Page(found, write_cursor(cursor or b""))
                cursor, looked = key, looked + 1
                session = reading.session(key[8:])
                if session is not None and _fits(session, service, agent):
                    found.append(session)
        return Page(found, None)

    def session(self, session_id: str, service: str | None = None) -> list[SessionShown]:
        """The sessions of that id: one per service that has it."""
        with self._index.reading() as reading:
            found = [
                _session_shown(reading, key)
                for key in _sessions_of(reading, session_id)
                if service is None or key == session_key(service, session_id)
            ]
        return [shown for shown in found if shown is not None]

    def trace(self, trace_id: str) -> TraceShown | None:
        """One trace, or None."""
        with self._index.reading() as reading:
            return _trace_shown(reading, trace_id)

    def signals(
        self,
        *,
        limit: int,
        cursor: bytes | None = None,
        session_id: str | None = None,
        trace_id: str | None = None,
        evaluator: str | None = None,
    ) -> Page[msgspec.Raw]:
        """Signals, the latest first; filters are joined by and."""
        with self._index.reading() as reading:
            if trace_id is not None:
                rows = _newest_first(reading.signals_of(trace_subject(trace_id)), cursor)
            elif session_id is not None:
                rows = _newest_first(_all_of(reading, session_id), cursor)
            else:
                rows = _recent(reading, cursor)
            return _page(rows, limit, session_id, evaluator)


def session_summary(session: SessionEntry) -> dict[str, Any]:
    """A session as `/api/v1/sessions` lists it."""
    return {
        "service": session.service,
        "session_id": session.session_id,
        "session_source": session.session_source,
        "agent": session.agent,
        "agent_version": session.agent_version,
        "started": None if session.started is None else time_shown(session.started),
        "last": time_shown(session.last),
        "traces": session.traces,
        "reliability": session.reliability,
        "consistency": session.consistency,
        "coverage": session.coverage,
        "closed": session.closed,
    }


def session_shown(shown: SessionShown) -> dict[str, Any]:
    """A session as `/api/v1/sessions/{id}` gives it."""
    return {
        **session_summary(shown.entry),
        "traces": [_turn_shown(trace) for trace in shown.traces],
        "signals": shown.signals,
    }


def time_shown(micros: int) -> str:
    """RFC 3339, microseconds, UTC; the last representable moment for what lies beyond it."""
    return rfc3339(min(micros / 1e6, 253_402_300_799.0))


def _turn_shown(trace: TraceShown) -> dict[str, Any]:
    header = trace.entry.header
    length = max(0, header.end_time_unix_nano - header.start_time_unix_nano)
    return {
        "trace_id": header.trace_id,
        "started": time_shown(header.start_time_unix_nano // 1000),
        "duration": length / 1e9,
        "input": header.input,
        "output": header.output,
        "status": header.status,
        "error": header.error,
        "spans": header.spans,
        "revision": trace.entry.revision,
        "signals": trace.signals,
    }


def _fits(found: SessionEntry | AgentEntry, service: str | None, agent: str | None) -> bool:
    return (service is None or found.service == service) and (agent is None or found.agent == agent)


def _backwards(
    reading: Reading, database: Any, cursor: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    """Entries below the key `cursor`, the highest first."""
    at = reading.txn.cursor(database)
    below = at.prev() if cursor and at.set_range(cursor) else at.last()
    while below:
        yield bytes(at.key()), bytes(at.value())
        below = at.prev()


def _sessions_of(reading: Reading, session_id: str) -> list[bytes]:
    prefix = key_of("id", session_id)
    return [key[KEY_WIDTH:] for key, _ in reading.under(prefix, reading.store.sessions_by_id)]


def _session_shown(reading: Reading, key: bytes) -> SessionShown | None:
    entry = reading.session(key)
    if entry is None:
        return None
    traces = [_trace_shown(reading, trace_id) for _, trace_id in reading.traces_of(key)]
    own = [msgspec.Raw(signal.json) for _, signal in _ordered(reading.signals_of(key))]
    return SessionShown(entry, [trace for trace in traces if trace is not None], own)


def _trace_shown(reading: Reading, trace_id: str) -> TraceShown | None:
    entry = reading.trace(trace_id)
    if entry is None:
        return None
    signals = _ordered(reading.signals_of(trace_subject(trace_id)))
    return TraceShown(entry, [msgspec.Raw(signal.json) for _, signal in signals])


def _ordered(rows: Iterator[tuple[bytes, SignalEntry]]) -> list[tuple[bytes, SignalEntry]]:
    return sorted(rows, key=lambda row: row[1].evaluator)


def _all_of(reading: Reading, session_id: str) -> Iterator[tuple[bytes, SignalEntry]]:
    for session in _sessions_of(reading, session_id):
        yield from reading.signals_of(session)
        for _, trace_id in reading.traces_of(session):
            yield from reading.signals_of(trace_subject(trace_id))


def _newest_first(
    rows: Iterator[tuple[bytes, SignalEntry]], cursor: bytes | None
) -> Iterator[SignalEntry]:
    below = read_number_key(cursor) if cursor and len(cursor) == 8 else None
    signals = [signal for _, signal in rows if below is None or signal.sequence < below]
    yield from sorted(signals, key=lambda signal: signal.sequence, reverse=True)


def _recent(reading: Reading, cursor: bytes | None) -> Iterator[SignalEntry]:
    for _, key in _backwards(reading, reading.store.recent, cursor):
        signal = reading.signal(key)
        if signal is not None:
            yield signal


def _page(
    rows: Iterator[SignalEntry], limit: int, session_id: str | None, evaluator: str | None
) -> Page[msgspec.Raw]:
    found: list[msgspec.Raw] = []
    last = None
    for looked, signal in enumerate(rows):
        if len(found) == limit or looked == LOOKED_AT:
            return Page(found, None if last is None else write_cursor(number_key(last)))
        last = signal.sequence
        if evaluator is not None and signal.evaluator != evaluator:
            continue
        if session_id is None or signal.session_id == session_id:
            found.append(msgspec.Raw(signal.json))
    return Page(found, None)
