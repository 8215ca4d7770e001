"""What of a session is ranked among earlier ones, as its window stands. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from collector.records.sessions import SessionTurn, TaskClaims
from collector.records.subject import Subject, shared_fields
from collector.records.traces import TraceCalls, WorkRecord
from collector.scoring.effects import Placed
from collector.scoring.rules import COMPLETED, Rules
from collector.scoring.sliding_window import SlidingWindow, is_turn
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


def ranked_work(
    rules: Rules,
    window: SlidingWindow,
    task: TaskClaims | None,
    subject: Subject,
    outcomes: Iterable[Outcome],
    placed: Placed | None = None,
) -> tuple[WorkRecord, ...]:
    """What is ranked of a session, and of the trace that changed it; empty when no evaluator ranks it."""
    if not rules.ranks:
        return ()
    completed = (each for each in outcomes if each.evaluator == COMPLETED)
    repeated = next(completed, None) if rules.completes else None
    counts = rules.counts_calls and placed is not None and placed.placement.inside
    trace = _calls_of(placed.entry) if counts and placed and is_turn(placed.entry) else None
    return (session_work(subject, window, task, repeated, trace),)


def _calls_of(entry: SessionTurn) -> TraceCalls:
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
