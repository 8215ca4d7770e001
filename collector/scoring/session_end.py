"""How a session ends: its last word, its record, its task run, and what a judge must still say. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from collector.records.sessions import SessionAwaited, SessionHead, TaskClaims
from collector.records.traces import RunRecord, SessionRecord
from collector.scoring.effects import SessionClosed
from collector.scoring.emit import Subject
from collector.scoring.ports import Rules
from collector.scoring.session_signals import session_outcomes, session_subject
from collector.scoring.session_window import SessionWindow
from collector.scoring.task_run import awaits, run_of
from collector.scoring.turn import bare
from evaluators.model import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """What is known of a session when it closes."""

    subject: Subject
    outcomes: tuple[Outcome, ...]
    """Final, of the evaluators that read its turns."""
    unasked: tuple[Outcome, ...]
    """Of its judged evaluators, when no judge has to be asked."""
    record: SessionRecord
    awaited: SessionAwaited | None
    """None: no verdict is waited for."""
    run: RunRecord | None
    """None: it was no run of a task, or a verdict must decide that first."""


def session_end(
    key: bytes,
    head: SessionHead,
    window: SessionWindow,
    *,
    rules: Rules,
    reason: SessionClosed,
    now: float,
) -> SessionEnd:
    """The end of the session of this key at log time `now` (Unix seconds); its traces wait for nothing any more."""
    subject = session_subject(head, window, reason)
    unasked = rules.judged.settled_session(key, has_turns=bool(len(window.turns)))
    awaited = None
    if rules.judged.session and not unasked:
        awaited = _awaited(subject, head.task, window, rules=rules, reason=reason, now=now)
    outcomes = _last_outcomes(subject, window, rules)
    return SessionEnd(
        subject=subject,
        outcomes=outcomes,
        unasked=unasked,
        record=_record(subject, window, awaited, reason),
        awaited=awaited,
        run=_run(subject, head.task, (*outcomes, *unasked), awaited, rules.task_evaluator),
    )


def _last_outcomes(subject: Subject, window: SessionWindow, rules: Rules) -> tuple[Outcome, ...]:
    """The last word is computed from the turns in order, so that no way there can leave a trace in it."""
    scorer = rules.new_scorer()
    for turn in window.turns:
        scorer.put(bare(turn))
    return session_outcomes(subject, window, scorer)


def _awaited(
    subject: Subject,
    task: TaskClaims | None,
    window: SessionWindow,
    *,
    rules: Rules,
    reason: SessionClosed,
    now: float,
) -> SessionAwaited:
    return SessionAwaited(
        service=subject.service,
        session_id=subject.session_id,
        session_source=subject.session_source,
        agent=subject.agent,
        agent_version=subject.agent_version,
        seen=subject.seen,
        closed=reason,
        closed_at=now,
        digest=window.input_digest(()),
        due=tuple(each.spec.name for each in rules.judged.session),
        task=task,
    )


def _record(
    subject: Subject, window: SessionWindow, awaited: SessionAwaited | None, reason: SessionClosed
) -> SessionRecord:
    return SessionRecord(
        service=subject.service,
        session_id=subject.session_id,
        closed=reason,
        traces=tuple(entry.offset for entry in window),
        digest=awaited.digest if awaited is not None else "",
        due=awaited.due if awaited is not None else (),
    )


def _run(
    subject: Subject,
    task: TaskClaims | None,
    outcomes: tuple[Outcome, ...],
    awaited: SessionAwaited | None,
    evaluator: str,
) -> RunRecord | None:
    """The task run that the session was, unless a verdict must decide it first."""
    if awaited is not None and awaits(awaited, evaluator):
        return None
    return run_of(task, subject, outcomes, evaluator=evaluator)
