"""One write transaction on the index: records in, entries kept consistent."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

import lmdb
import msgspec

from collector.api.store import (
    AgentEntry,
    Reading,
    SessionEntry,
    SignalEntry,
    Store,
    TraceEntry,
    encode_entry,
    key_of,
    link,
    micros,
    number_key,
    read_number_key,
    session_key,
    trace_subject,
)
from collector.api.unscored import why_unscored
from collector.log.port import Position
from collector.records.signal import HEADLINES, SignalHeader
from collector.records.trace_views import ListedTrace, TraceHeader
from collector.records.traces import SessionRecord


class Change(Reading):
    """Sessions that are touched are held until `finish`, which also settles their agents."""

    def __init__(self, store: Store, txn: lmdb.Transaction) -> None:
        super().__init__(store, txn)
        self.sequence = self._last_sequence()
        self._touched: dict[bytes, tuple[SessionEntry | None, SessionEntry]] = {}
        self._known_trace: str | None = None

    # --- traces ---

    def take_trace(self, seen: ListedTrace, position: Position) -> None:
        """Keep a trace; an older revision, or the same record again, changes nothing."""
        header = seen.trace
        old = self.trace(header.trace_id)
        if old is not None and not _supersedes(seen.revision, position, old):
            return
        key = session_key(header.service, header.session_id)
        entry = TraceEntry(
            header=header,
            session=key,
            revision=seen.revision,
            partition=position.partition,
            offset=position.offset,
        )
        session = self._load(key, header)
        self._place(entry, old)
        is_new = old is None or old.offset is None
        self._advance(session, seen, position, reopens=is_new)

    def close_session(self, seen: SessionRecord, position: Position) -> None:
        """Note why a session closed, unless it has gone on since."""
        key = session_key(seen.service, seen.session_id)
        if key not in self._touched and self.session(key) is None:
            return
        session = self._load(key)
        if position.offset > session.newest:
            session.closed, session.newest = seen.closed, position.offset

    # --- signals ---

    def take_signal(self, header: SignalHeader, json: bytes, position: Position) -> bool:
        """Keep a signal if it is the newest of its (service, scope, subject, evaluator, method)."""
        trace_id = header.trace_id if header.scope == "trace" else None
        subject = (
            session_key(header.service, header.session_id)
            if trace_id is None
            else trace_subject(trace_id)
        )
        key = subject + key_of(header.service, header.scope, header.evaluator, header.method)
        old = self.signal(key)
        if old is not None and not _takes_its_place(header, position, old):
            return False
        self._store_signal(key, old, header, json, position)
        if trace_id is None:
            self._note_scores(header, json)
        elif trace_id != self._known_trace:
            self._expect_trace(header, trace_id)
        return True

    # --- the end ---

    def finish(self) -> None:
        """Write the sessions that were touched, and what they change for their agents."""
        for key, (before, after) in self._touched.items():
            if before == after:
                continue
            if before is not None:
                self._forget_session_rows(key, before)
            if after.traces or after.newest >= 0 or after.last:
                self._write_session(key, after)
        self._touched.clear()

    def evict_oldest(self) -> tuple[int, int] | None:
        """Forget the session that has been quiet the longest; (traces, signals) gone, None when there is none."""
        cursor = self.txn.cursor(self.store.sessions_by_last)
        if not cursor.first():
            return None
        key = bytes(cursor.key())[8:]
        session = self.session(key)
        gone = [self.drop_trace(trace_id) for _, trace_id in list(self.traces_of(key))]
        signals = self._drop_signals(key)
        if session is not None:
            self._forget_session_rows(key, session)
        else:
            cursor.delete()
        self._touched.pop(key, None)
        return len(gone), sum(gone) + signals

    def trim(self, max_traces: int) -> tuple[int, int]:
        """Forget the oldest traces of touched sessions that hold too many; (traces, signals) gone."""
        traces = signals = 0
        for key, (_, session) in self._touched.items():
            surplus = session.traces - max_traces
            if surplus <= 0:
                continue
            for _, trace_id in list(islice(self.traces_of(key), surplus)):
                signals += self.drop_trace(trace_id)
                traces += 1
            session.traces -= surplus
        return traces, signals

    def drop_trace(self, trace_id: str) -> int:
        """Forget a trace and its signals; how many signals."""
        entry = self.trace(trace_id)
        if entry is not None:
            self.txn.delete(link(entry), db=self.store.session_traces)
            self.txn.delete(trace_id.encode(), db=self.store.traces)
        return self._drop_signals(trace_subject(trace_id))

    # --- within ---

    def _last_sequence(self) -> int:
        cursor = self.txn.cursor(self.store.recent)
        return read_number_key(bytes(cursor.key())) if cursor.last() else 0

    def _place(self, entry: TraceEntry, old: TraceEntry | None) -> None:
        self.txn.put(entry.header.trace_id.encode(), encode_entry(entry), db=self.store.traces)
        if old is not None:
            if link(old) == link(entry):
                return
            self.txn.delete(link(old), db=self.store.session_traces)
            left = self._load(old.session)
            left.traces -= 1
            if not left.traces and left.newest < 0 and left.session_id == entry.header.trace_id:
                left.last = 0  # it named no session while it was open: it was none of its own
        self.txn.put(link(entry), b"", db=self.store.session_traces)
        self._load(entry.session).traces += 1

    def _advance(
        self, session: SessionEntry, seen: ListedTrace, position: Position, *, reopens: bool
    ) -> None:
        header = seen.trace
        started = header.start_time_unix_nano // 1000
        session.started = started if session.started is None else min(session.started, started)
        session.last = max(session.last, micros(seen.seen))
        session.agent, session.agent_version = header.agent, header.agent_version
        session.session_source = header.session_source
        if position.offset > session.newest:
            session.newest = position.offset
            session.closed = None if reopens else session.closed

    def _store_signal(
        self,
        key: bytes,
        old: SignalEntry | None,
        header: SignalHeader,
        json: bytes,
        position: Position,
    ) -> None:
        if old is not None:
            self.txn.delete(number_key(old.sequence), db=self.store.recent)
        self.sequence += 1
        entry = SignalEntry(
            sequence=self.sequence,
            revision=header.revision,
            partition=position.partition,
            offset=position.offset,
            evaluator=header.evaluator,
            session_id=header.session_id,
            trace_id=header.trace_id,
            final=header.final,
            json=json,
        )
        self.txn.put(key, encode_entry(entry), db=self.store.signals)
        self.txn.put(number_key(self.sequence), key, db=self.store.recent, append=True)

    def _note_scores(self, header: SignalHeader, json: bytes) -> None:
        session = self._load(session_key(header.service, header.session_id), header)
        session.agent, session.agent_version = header.agent, header.agent_version
        session.last = max(session.last, _micros(header.time))
        field = HEADLINES.get(header.evaluator)
        if field is not None:
            setattr(session, field, header.score)
            session.coverage = header.coverage or session.coverage
        if field == "reliability":
            session.unscored = None if header.score is not None else why_unscored(json)

    def _expect_trace(self, header: SignalHeader, trace_id: str) -> None:
        """A signal whose trace has not been read yet still belongs to a session, else it would never leave."""
        self._known_trace = trace_id
        if self.trace(trace_id) is not None:
            return
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
        key = session_key(header.service, header.session_id)
        session = self._load(key, header)
        session.last = max(session.last, at)
        self._place(TraceEntry(header=expected, session=key), None)

    def _load(self, key: bytes, header: TraceHeader | SignalHeader | None = None) -> SessionEntry:
        """The session, held until `finish`; `header` begins it if it is not in the index."""
        if key not in self._touched:
            before = self.session(key)
            if before is not None:
                after = msgspec.structs.replace(before)
            elif header is not None:
                after = _begin(header)
            else:
                raise KeyError(key)
            self._touched[key] = (before, after)
        return self._touched[key][1]

    def _write_session(self, key: bytes, session: SessionEntry) -> None:
        store = self.store
        self.txn.put(key, encode_entry(session), db=store.sessions)
        self.txn.put(number_key(session.last) + key, b"", db=store.sessions_by_last)
        self.txn.put(key_of("id", session.session_id) + key, b"", db=store.sessions_by_id)
        self._count(session, 1)

    def _forget_session_rows(self, key: bytes, session: SessionEntry) -> None:
        store = self.store
        self.txn.delete(key, db=store.sessions)
        self.txn.delete(number_key(session.last) + key, db=store.sessions_by_last)
        self.txn.delete(key_of("id", session.session_id) + key, db=store.sessions_by_id)
        self._count(session, -1)

    def _drop_signals(self, subject: bytes) -> int:
        found = list(self.signals_of(subject))
        for key, entry in found:
            self.txn.delete(key, db=self.store.signals)
            self.txn.delete(number_key(entry.sequence), db=self.store.recent)
        return len(found)

    def _count(self, session: SessionEntry, sign: int) -> None:
        """Add a session to its agent's sums, or take it out."""
        key = key_of("agent", session.service, session.agent, session.agent_version or "")
        agent = self.agent(key) or AgentEntry(
            service=session.service, agent=session.agent, agent_version=session.agent_version
        )
        agent.sessions += sign
        agent.traces += sign * session.traces
        agent.last = max(agent.last, session.last)
        if session.reliability is not None:
            agent.scored += sign
        elif session.unscored is not None and sign > 0:
            agent.unscored = session.unscored
        if agent.sessions <= 0:
            self.txn.delete(key, db=self.store.agents)
        else:
            self.txn.put(key, encode_entry(agent), db=self.store.agents)


def _takes_its_place(header: SignalHeader, position: Position, old: SignalEntry) -> bool:
    """At equal revision the final signal wins, whichever came first."""
    if header.revision == old.revision and header.final != old.final:
        return header.final
    return _supersedes(header.revision, position, old)


def _supersedes(revision: int, position: Position, old: SignalEntry | TraceEntry) -> bool:
    """The highest revision wins, then the later offset; any record wins over a trace that has none yet."""
    if old.offset is None or revision != old.revision:
        return old.offset is None or revision > old.revision
    return position.partition != old.partition or position.offset > old.offset


def _begin(header: TraceHeader | SignalHeader) -> SessionEntry:
    return SessionEntry(
        service=header.service,
        session_id=header.session_id,
        session_source=header.session_source,
        agent=header.agent,
        agent_version=header.agent_version,
    )


def _micros(time: str) -> int:
    try:
        return micros(datetime.fromisoformat(time).timestamp())
    except ValueError:
        return 0
