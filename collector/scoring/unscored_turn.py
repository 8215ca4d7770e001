"""What a session keeps of a trace, before its outcomes are there. Pure."""

from __future__ import annotations

from collector.records.sessions import SessionTurn
from collector.records.trace_views import SummarisedTrace


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
