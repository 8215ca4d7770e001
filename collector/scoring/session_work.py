"""What of a session is ranked among earlier ones, as its window stands. Pure."""

from __future__ import annotations

from collector.records.sessions import SessionTurn, TaskClaims
from collector.records.subject import Subject, shared_fields
from collector.records.traces import TraceCalls, WorkRecord
from collector.scoring.sliding_window import SlidingWindow
from evaluators.model import Outcome, Turn

_LATEST = (1 << 64) - 1
"""The last time that a span can name. A turn's duration is rounded to a float: its sum with the start can be later."""


def session_work(
    subject: Subject,
    window: SlidingWindow,
    task: TaskClaims | None,
    repeated: Outcome | None,
    trace: TraceCalls | None = None,
) -> WorkRecord:
    """The session's work, which depends on the set of its turns alone; `repeated` and `trace`: see `WorkRecord`."""
    turns = window.turns
    return WorkRecord(
        **shared_fields(subject, WorkRecord),
        model=turns[0].model if turns else "",
        digest=window.input_digest(()),
        work=window.work.total,
        writes=window.work.writes,
        has_text=window.work.with_text > 0,
        task_id=None if task is None else task.task_id,
        repeated=repeated,
        trace=trace,
        uses=window.uses.session(turns[-1] if turns else None),
        ended=0 if subject.closed is None else max((_end(each.turn) for each in window), default=0),
    )


def calls_of(entry: SessionTurn) -> TraceCalls:
    """The model calls of a trace that closed."""
    turn = entry.turn
    return TraceCalls(
        trace_id=turn.trace_id,
        agent=entry.agent,
        model=turn.model,
        model_calls=turn.model_calls,
    )


def _end(turn: Turn) -> int:
    return min(_LATEST, turn.start_time_unix_nano + round(turn.duration * 1e9))
