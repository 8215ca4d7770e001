"""The records of a partition of `sessions`, sorted into the sessions that they make. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from collector.records.sessions import (
    SessionAwaited,
    SessionHead,
    SessionsTopic,
    SessionTurn,
    session_key,
)
from collector.scoring.effects import Tombstone


@dataclass(slots=True, kw_only=True)
class StoredSessions:
    """By key, in the order of the offsets of their heads."""

    opened: dict[bytes, tuple[SessionHead, list[SessionTurn]]] = field(
        default_factory=dict[bytes, tuple[SessionHead, list[SessionTurn]]]
    )
    closed: dict[bytes, SessionHead] = field(default_factory=dict[bytes, SessionHead])
    awaited: list[SessionAwaited] = field(default_factory=list[SessionAwaited])
    orphans: list[Tombstone] = field(default_factory=list[Tombstone])
    """Tombstones for traces whose session no longer exists."""


def stored_sessions(records: Iterable[SessionsTopic]) -> StoredSessions:
    """The records as they were replayed, the newest of each key."""
    stored = StoredSessions()
    heads: dict[bytes, SessionHead] = {}
    traces: list[SessionTurn] = []
    for record in records:
        if isinstance(record, SessionTurn):
            traces.append(record)
        elif isinstance(record, SessionAwaited):
            stored.awaited.append(record)
        else:
            heads[session_key(record.service, record.session_id)] = record
    for key, head in sorted(heads.items(), key=lambda each: each[1].offset):
        if head.closed:
            stored.closed[key] = head
        else:
            stored.opened[key] = head, []
    for trace in traces:
        found = stored.opened.get(session_key(trace.service, trace.session_id))
        if found is not None and trace.offset >= found[0].since:
            found[1].append(trace)
        else:
            stored.orphans.append(Tombstone(state=trace))
    return stored
