"""Queries of the index. Lists are newest first by default; a cursor is the place of the last entry of a page.

A list of signals looks at a bounded number of them: with a filter that few signals pass, a page may be short or empty
and still have a `next`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from collector.api.feedback_table import said_by_people
from collector.api.index import Index
from collector.api.reading import Reading
from collector.api.session_list import EVERY, SORTS, SessionFilter, key_after, place_after
from collector.api.store import (
    AgentEntry,
    SessionEntry,
    SignalEntry,
    TraceEntry,
    as_cursor,
    place_in,
    session_subject,
    trace_subject,
    write_cursor,
)
from collector.records.feedback import Feedback
from collector.records.signal import rfc3339

LOOKED_AT = 5_000
"""Signals of one page that are looked at where few of them fit what is asked; the next page goes on from there."""
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
    before: str | None = None
    """The trace of its session that began before it; only of a trace that was asked for by its id."""
    after: str | None = None
    later: int = 0  # how many traces of its session began after it; known as those two are
    feedback: Sequence[Feedback] = ()  # what was said of it, the latest first; known as those are
    forwarded: tuple[bool, str] | None = None  # as `Reading.forwarded`; known as those are


@dataclass(frozen=True, slots=True)
class SessionShown:
    """A session with its traces in order of start, and its own signals."""

    entry: SessionEntry
    traces: Sequence[TraceShown]
    signals: Sequence[msgspec.Raw]
    feedback: Sequence[Feedback] = ()  # what was said of it and of its traces, the latest first


@dataclass(frozen=True, slots=True)
class SessionPart:
    """Some of a session's traces, next to one another in order of start."""

    shown: SessionShown
    earlier: int  # traces of the session before these
    others: Sequence[str]  # services that have a session of the same id


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
        with self._index.reading() as reading:
            placed, more = reading.placed(cursor, service, agent, limit)
        return Page([each.entry for each in placed], more)

    def sessions(
        self,
        asked: SessionFilter = EVERY,
        *,
        limit: int,
        cursor: bytes | None = None,
        sort: str = "newest",
    ) -> Page[SessionEntry]:
        place = place_after(sort, cursor)
        with self._index.reading() as reading:
            rows = reading.sessions(asked, SORTS[sort], place, limit + 1)
        more = as_cursor(key_after(sort, rows[limit - 1][0])) if len(rows) > limit else None
        return Page([each for _, each in rows[:limit]], more)

    def session(self, session_id: str, service: str | None = None) -> list[SessionShown]:
        """The sessions of that id, with all their traces: one per service that has it."""
        with self._index.reading() as reading:
            return [
                _session_shown(reading, row, entry, reading.traces_of(row))
                for row, entry in _of_id(reading, session_id, service)
            ]

    def session_part(
        self, session_id: str, service: str | None, *, most: int, before: str | None = None
    ) -> SessionPart | None:
        """The session of that id, the first where several services have one, with at most `most` of its traces.

        Those are the newest, or the next ones before the trace with the id `before`, if that is one of its traces.
        """
        with self._index.reading() as reading:
            found = _of_id(reading, session_id, service)
            if not found:
                return None
            (row, entry), *others = found
            traces = reading.traces_of(row, most, _place_of(reading, row, before))
            return SessionPart(
                shown=_session_shown(reading, row, entry, traces),
                earlier=reading.around(traces[0])[0] if traces else 0,
                others=[other.service for _, other in others],
            )

    def latest(self, most: int) -> list[SessionShown]:
        """So many of the newest sessions, as many of each agent; each with its newest trace alone."""
        with self._index.reading() as reading:
            seen = reading.agents(None, None, None, most)
            agents = dict.fromkeys((entry.service, entry.agent) for _, entry in seen)
            each = max(1, most // max(1, len(agents)))
            chosen = (
                entry
                for service, agent in agents
                for _, entry in reading.sessions(
                    SessionFilter(service=service, agent=agent), SORTS["newest"], None, each
                )
            )
            return [shown for entry in chosen if (shown := _newest_shown(reading, entry))]

    def trace(self, trace_id: str) -> TraceShown | None:
        with self._index.reading() as reading:
            entry = reading.trace(trace_id)
            if entry is None:
                return None
            before, after = reading.beside(entry)
            _, later = reading.around(entry)
            return replace(
                _trace_shown(reading, entry),
                before=before,
                after=after,
                later=later,
                feedback=reading.feedback_of_trace(trace_id),
                forwarded=reading.forwarded(entry.row.id),
            )

    def externals(self) -> list[dict[str, Any]]:
        with self._index.reading() as reading:
            return reading.externals()

    def has_feedback(self, said: Feedback) -> bool:
        with self._index.reading() as reading:
            return reading.has_feedback(said.id, said.time)

    def said_of_session(self, service: str, session_id: str, names: Collection[str]) -> bool | None:
        """Whether feedback of these names says that a session went well; None: no one says so."""
        with self._index.reading() as reading:
            found = reading.session_by_name(service, session_id)
            said = [] if found is None else reading.feedback_of_session(*found)
        opinions = {each.opinion for each in said if each.name in names} - {"neutral"}
        return "negative" not in opinions if opinions else None

    def signals(
        self,
        *,
        limit: int,
        cursor: bytes | None = None,
        session_id: str | None = None,
        trace_id: str | None = None,
        evaluator: str | None = None,
    ) -> Page[msgspec.Raw]:
        with self._index.reading() as reading:
            place = place_in(cursor, 1)
            below = None if place is None else place[0]
            if trace_id is not None:
                row = reading.trace_row(trace_id)
                own = [] if row is None else reading.signals_of(trace_subject(row.id))
                rows = _newest_first(own, below)
            elif session_id is not None:
                rows = _newest_first(_all_of(reading, session_id), below)
            else:
                rows = reading.recent(below)
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
        "question": session.question,
        "work_baseline": session.work,
        "seconds": session.seconds,
        "cost_usd": session.cost,
        "tokens": {"input": session.input_tokens, "output": session.output_tokens},
        "errors": session.errors,
    }


def session_shown(shown: SessionShown) -> dict[str, Any]:
    """A session as `/api/v1/sessions/{id}` gives it."""
    return {
        **session_summary(shown.entry),
        "traces": [_turn_shown(trace) for trace in shown.traces],
        "signals": shown.signals,
        **feedback_shown(shown.feedback),
    }


def feedback_shown(feedback: Sequence[Feedback]) -> dict[str, Any]:
    """What was said of a trace or a session, and what people think on the whole: null where no one said anything."""
    return {"user_outcome": said_by_people(feedback), "feedback": feedback}


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
        "revision": trace.entry.row.revision,
        "signals": trace.signals,
    }


def _of_id(
    reading: Reading, session_id: str, service: str | None
) -> list[tuple[int, SessionEntry]]:
    found = reading.sessions_of_id(session_id)
    return [each for each in found if service is None or each[1].service == service]


def _place_of(reading: Reading, session: int, trace_id: str | None) -> tuple[int, str] | None:
    """Where a trace is among those of its session; None: it is not one of them."""
    row = None if trace_id is None else reading.trace_row(trace_id)
    if trace_id is None or row is None or row.session != session:
        return None
    return row.start, trace_id


def _session_shown(
    reading: Reading, row: int, entry: SessionEntry, traces: Iterable[TraceEntry]
) -> SessionShown:
    shown = [_trace_shown(reading, trace) for trace in traces]
    signals = _ordered(reading.signals_of(session_subject(row)))
    return SessionShown(entry, shown, signals, reading.feedback_of_session(row, entry))


def _newest_shown(reading: Reading, entry: SessionEntry) -> SessionShown | None:
    found = reading.session_by_name(entry.service, entry.session_id)
    if found is None:
        return None
    trace = reading.newest_trace(found[0])
    signals = _ordered(reading.signals_of(session_subject(found[0])))
    return SessionShown(entry, [] if trace is None else [_trace_shown(reading, trace)], signals)


def _trace_shown(reading: Reading, entry: TraceEntry) -> TraceShown:
    return TraceShown(entry, _ordered(reading.signals_of(trace_subject(entry.row.id))))


def _ordered(signals: list[SignalEntry]) -> list[msgspec.Raw]:
    """By evaluator; of one evaluator in an order that is always the same."""
    ordered = sorted(signals, key=lambda each: (each.evaluator, each.slot))
    return [msgspec.Raw(each.json) for each in ordered]


def _all_of(reading: Reading, session_id: str) -> Iterator[SignalEntry]:
    for session, _ in reading.sessions_of_id(session_id):
        yield from reading.signals_of(session_subject(session))
        yield from reading.signals_of_traces(session)


def _newest_first(rows: Iterable[SignalEntry], below: int | None) -> Iterator[SignalEntry]:
    signals = [each for each in rows if below is None or each.sequence < below]
    yield from sorted(signals, key=lambda each: each.sequence, reverse=True)


def _page(
    rows: Iterator[SignalEntry], limit: int, session_id: str | None, evaluator: str | None
) -> Page[msgspec.Raw]:
    found: list[msgspec.Raw] = []
    last = None
    for looked, signal in enumerate(rows):
        if len(found) == limit or looked == LOOKED_AT:
            return Page(found, None if last is None else write_cursor(last))
        last = signal.sequence
        if evaluator is not None and signal.evaluator != evaluator:
            continue
        if session_id is None or signal.session_id == session_id:
            found.append(msgspec.Raw(signal.json))
    return Page(found, None)
