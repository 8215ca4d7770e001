"""What a session is before its first trace, and what it keeps of a trace before its outcomes are there. Pure."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from collector.records.sessions import SessionHead, SessionTurn, split_session_key
from collector.records.trace_summary import TraceSummary
from collector.records.trace_views import SummarisedTrace
from evaluators.model import PENDING, Turn


def new_head(
    key: bytes, trace: TraceSummary, closed: SessionHead | None, *, now: float
) -> SessionHead:
    """The head of a session that this trace opens; `closed` is that of an earlier one of the same key.

    Raises:
        Undecodable: the key is not a session's.
    """
    # A revised trace stays in the session of its key, whatever it names itself.
    service, session_id = split_session_key(key)
    return SessionHead(
        service=service,
        session_id=session_id,
        session_source=trace.session_source,
        agent=trace.agent,
        agent_version=trace.agent_version,
        opened=now,
        last=now,
        offset=-1,
        since=0 if closed is None else closed.since,
    )


def unscored_turn(
    record: SummarisedTrace, *, service: str, session_id: str, offset: int, now: float = 0.0
) -> SessionTurn:
    """The trace as its window keeps it, before its outcomes are there; `now` is the record's log time."""
    summary = record.summary
    return SessionTurn(
        service=service,
        session_id=session_id,
        turn=summary.turn,
        revision=record.revision,
        offset=offset,
        seen=record.seen,
        agent=summary.agent,
        agent_version=summary.agent_version,
        session_source=summary.session_source,
        span_id=summary.span_id,
        closed=summary.closed,
        placed_at=now,
    )


def awaiting(turn: Turn, due: Collection[str]) -> Turn:
    """The turn with the evaluators that wait for a verdict among the unscored ones.

    Else a session would show what little has been scored as the whole while its judge is slow or down.
    """
    if not due:
        return turn
    return replace(
        turn,
        unscored=tuple(sorted({*turn.unscored, *due})),
        unscored_why={**turn.unscored_why, **dict.fromkeys(due, PENDING)},
    )
