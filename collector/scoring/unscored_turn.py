"""What a session keeps of a trace before its outcomes are there. Pure."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from collector.records.sessions import SessionTurn
from collector.records.trace_views import SummarisedTrace
from evaluators.model import PENDING, Turn


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
