"""The end of a session: its final outcomes, its record, its task run, and the verdict that it waits for. Pure.

A session whose traces name a task is a run of that task. Its success is the one that its traces state; else the
verdict of `tasks.evaluator` decides it, and the run is recorded once that verdict is there.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from collector.records.codec import encode
from collector.records.sessions import (
    SessionAwaited,
    SessionHead,
    SessionTurn,
    TaskClaims,
    split_session_key,
)
from collector.records.subject import Subject
from collector.records.trace_summary import TraceSummary
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import RunRecord, SessionRecord
from collector.scoring.outcome_signals import session_outcomes, session_subject
from collector.scoring.rules import Rules
from collector.scoring.sliding_window import SlidingWindow
from evaluators.formulas.task_runs import succeeded
from evaluators.model import PENDING, Outcome, SessionClosed, Turn


def new_head(
    key: bytes, trace: TraceSummary, closed: SessionHead | None, *, now: float
) -> SessionHead:
    """The head of a session that this trace opens; `closed` is that of an earlier one of the same key.

    Raises Undecodable: the key is not a session's.
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
    record: SummarisedTrace,
    *,
    service: str,
    session_id: str,
    offset: int,
    now: float = 0.0,
    more: bool = False,
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
        more=more,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    subject: Subject
    outcomes: tuple[Outcome, ...]  # final, of the evaluators that read its turns
    unasked: tuple[Outcome, ...]  # of its judged evaluators, when no judge has to be asked
    record: SessionRecord
    awaited: SessionAwaited | None  # None: it waits for no verdict
    run: RunRecord | None
    """None: it was not a run of a task, or a verdict must decide its success first."""


def session_end(
    key: bytes,
    head: SessionHead,
    window: SlidingWindow,
    *,
    rules: Rules,
    reason: SessionClosed,
    now: float,
) -> SessionEnd:
    """The end of the session of this key at log time `now` (Unix seconds), when no outcome of its traces is due."""
    subject = session_subject(head, window, reason)
    unasked = rules.judged.unasked_session(key, window.turns, more=head.more)
    plugins = rules.judged.session_plugins
    due = (*plugins, *(() if unasked else rules.judged.session))
    awaited = None
    if due:
        awaited = SessionAwaited(
            subject=subject,
            closed_at=now,
            digest=window.input_digest(()),
            due=tuple(each.spec.name for each in due),
            task=head.task,
        )
    outcomes = _final_outcomes(subject, window, rules, reason)
    run = None
    if awaited is None or not is_undecided(awaited, rules.task_evaluator):
        run = task_run(head.task, subject, (*outcomes, *unasked), evaluator=rules.task_evaluator)
    return SessionEnd(
        subject=subject,
        outcomes=outcomes,
        unasked=unasked,
        record=SessionRecord(
            service=subject.service,
            session_id=subject.session_id,
            closed=reason,
            traces=tuple(entry.offset for entry in window),
            digest=awaited.digest if awaited is not None else "",
            due=awaited.due if awaited is not None else (),
            more=head.more and not rules.judged.samples(key),
            agent=subject.agent if plugins else "",
            turns=newest_turns(window.turns) if plugins else (),
        ),
        awaited=awaited,
        run=run,
    )


TURNS_SIZE = 4 << 20
"""Bytes of the turns in a session's record, of which the log takes several times as many; about 4,000 turns."""


def newest_turns(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """All of them, or the newest that fit into the record; in their order."""
    room = TURNS_SIZE
    for at in range(len(turns) - 1, -1, -1):
        room -= len(encode(turns[at]))
        if room < 0:
            return tuple(turns[at + 1 :])
    return tuple(turns)


def _final_outcomes(
    subject: Subject, window: SlidingWindow, rules: Rules, reason: SessionClosed
) -> tuple[Outcome, ...]:
    """Computed from scratch, so that they do not depend on the order in which turns arrived."""
    scorer = rules.new_scorer()
    for turn in window.turns:
        scorer.put(turn)
    return session_outcomes(subject, window, scorer, closed=reason)


def merge_task_claims(claims: TaskClaims | None, trace: TraceSummary) -> TaskClaims | None:
    """The session's task after one more trace. If several traces set a field, the one that started last wins.

    A revision replaces the claims of its earlier revision, whenever it started.
    """
    if trace.task_id is None and trace.task_success is None:
        return claims
    claims = claims or TaskClaims()
    start, trace_id = trace.turn.start_time_unix_nano, trace.turn.trace_id
    if trace.task_id is not None and _wins(start, trace_id, claims.named_at, claims.named_by):
        claims = replace(claims, task_id=trace.task_id, named_at=start, named_by=trace_id)
    if trace.task_success is not None and _wins(
        start, trace_id, claims.stated_at, claims.stated_by
    ):
        claims = replace(claims, success=trace.task_success, stated_at=start, stated_by=trace_id)
    return claims


def _wins(start: int, trace_id: str, earlier_start: int, earlier_id: str) -> bool:
    return trace_id == earlier_id or (start, trace_id) > (earlier_start, earlier_id)


def is_undecided(session: SessionAwaited, evaluator: str) -> bool:
    """Whether a verdict that has not come yet decides the success of the session's task run."""
    claims = session.task
    if claims is None or claims.task_id is None or claims.success is not None:
        return False
    return evaluator in session.due


def task_run(
    claims: TaskClaims | None, subject: Subject, outcomes: Iterable[Outcome], *, evaluator: str
) -> RunRecord | None:
    """The task run that a closed session was; None: it names no task. `outcomes` are the session's final ones."""
    if claims is None or claims.task_id is None:
        return None
    verdict = next((each.success for each in outcomes if each.evaluator == evaluator), None)
    return RunRecord(
        service=subject.service,
        session_id=subject.session_id,
        agent=subject.agent,
        task_id=claims.task_id,
        success=succeeded(claims.success, verdict),
        stated=claims.success is not None,
        ended=subject.seen,
        named_at=claims.named_at,
    )
