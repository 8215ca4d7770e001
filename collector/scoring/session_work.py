"""What of a session is ranked among earlier ones, as its window is. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from collector.records.sessions import SessionHead, SessionTurn, TaskClaims
from collector.records.subject import Subject, shared_fields
from collector.records.traces import TraceCalls, TurnUses, WorkRecord
from collector.scoring.effects import PlacedTrace
from collector.scoring.rules import COMPLETED, Rules
from collector.scoring.sliding_window import SlidingWindow, is_turn, text_size
from evaluators.model import Outcome, Turn

# What an open session takes in memory: at rest, packed, which it is charged; and awake, of which few may be.
#
# Functions of what the log holds of it alone, so that a restart charges the same.

LONGEST = 64
"""Traces of a session that is packed at most: a longer one would take too long to wake for each of its traces."""
SESSION_COST = 3_500
"""Bytes that an awake session takes besides its traces, its key and its names, from what tracemalloc says."""
OUTCOME_COST = 220  # bytes of one evaluator's outcome of a trace: its score, its signal's id, the verdict that is due
RESTING_SESSION = 600  # the same of a session at rest
RESTING_OUTCOME = 25  # the same of one outcome of a trace at rest
RESTING_SKETCHES = 1_800
"""The same of the sketches of a turn at rest: a vector of 256 numbers, and an answer of some hundred words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMemory:
    outcomes: int  # of one trace, by how many evaluators it is scored
    sketches: int = 0  # of how many turns a session at rest keeps them

    def charged(
        self, key: bytes, head: SessionHead, claims: TaskClaims | None, window: SlidingWindow
    ) -> int:
        """Bytes that the session is charged: at rest, or awake where it is too long to be packed."""
        if len(window) > LONGEST:
            return self.awake(key, head, claims, window)
        traces = window.resting + RESTING_OUTCOME * self.outcomes * len(window)
        sketches = RESTING_SKETCHES * min(self.sketches, len(window))
        return RESTING_SESSION + _names(key, head, claims) + traces + sketches

    def awake(
        self, key: bytes, head: SessionHead, claims: TaskClaims | None, window: SlidingWindow
    ) -> int:
        traces = window.cost + OUTCOME_COST * self.outcomes * len(window)
        return SESSION_COST + _names(key, head, claims) + traces


def _names(key: bytes, head: SessionHead, claims: TaskClaims | None) -> int:
    task = 0 if claims is None else text_size(claims.task_id)
    return len(key) + text_size(head.session_id) + text_size(head.service) + task


_LATEST = (1 << 64) - 1
"""The last time that a span can name. A turn's duration is rounded to a float: its sum with the start can be later."""


def ranked_work(
    rules: Rules,
    window: SlidingWindow,
    task: TaskClaims | None,
    subject: Subject,
    outcomes: Iterable[Outcome],
    placed: PlacedTrace | None = None,
) -> tuple[WorkRecord, ...]:
    """The session's work, which depends on the set of its turns alone, and that of the turn that changed it.

    Empty when no evaluator ranks it.
    """
    if not rules.ranks:
        return ()
    found = tuple(outcomes)
    completed = (each for each in found if each.evaluator == COMPLETED)
    changed = placed.entry if placed is not None and placed.placement.inside else None
    if changed is not None and not is_turn(changed):
        changed = None
    turns = window.turns
    record = WorkRecord(
        **shared_fields(subject, WorkRecord),
        model=turns[0].model if turns else "",
        digest=window.input_digest(()),
        work=window.work.total,
        writes=window.work.writes,
        has_text=window.work.with_text > 0,
        task_id=None if task is None else task.task_id,
        repeated=next(completed, None) if rules.completes else None,
        trace=_calls_of(changed) if changed is not None and rules.counts_calls else None,
        used=None if changed is None else _used_by(changed, window),
        failed=any(each.success is False for each in found),
        cancelled=window.work.cancelled > 0,
        ended=0 if subject.closed is None else max((_end(each.turn) for each in window), default=0),
    )
    return (record,)


def _calls_of(entry: SessionTurn) -> TraceCalls:
    turn = entry.turn
    return TraceCalls(
        trace_id=turn.trace_id,
        agent=entry.agent,
        model=turn.model,
        model_calls=turn.model_calls,
    )


def _used_by(entry: SessionTurn, window: SlidingWindow) -> TurnUses:
    turn = entry.turn
    return TurnUses(trace_id=turn.trace_id, revision=entry.revision, uses=window.uses.of_turn(turn))


def _end(turn: Turn) -> int:
    return min(_LATEST, turn.start_time_unix_nano + round(turn.duration * 1e9))
