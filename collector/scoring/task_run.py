"""Whether a session was a run of a task, and whether it succeeded (CONTRACT section 7). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from collector.records.sessions import SessionAwaited, TaskClaims
from collector.records.traces import RunRecord
from collector.scoring.emit import Subject
from evaluators.formulas.task_runs import succeeded
from evaluators.model import Outcome, Trace


def heard(said: TaskClaims | None, trace: Trace) -> TaskClaims | None:
    """What the session's traces say after one more: the later start wins, a revision replaces its own word."""
    if trace.task_id is None and trace.task_success is None:
        return said
    said = said or TaskClaims()
    at, by = trace.start_time_unix_nano, trace.trace_id
    if trace.task_id is not None and _is_newer(at, by, said.named_at, said.named_by):
        said = replace(said, task_id=trace.task_id, named_at=at, named_by=by)
    if trace.task_success is not None and _is_newer(at, by, said.stated_at, said.stated_by):
        said = replace(said, success=trace.task_success, stated_at=at, stated_by=by)
    return said


def awaits(session: SessionAwaited, evaluator: str) -> bool:
    """Whether the run's success is for a verdict to decide that has not come."""
    said = session.task
    if said is None or said.task_id is None or said.success is not None:
        return False
    return evaluator in session.due


def run_of(
    said: TaskClaims | None, subject: Subject, outcomes: Iterable[Outcome], *, evaluator: str
) -> RunRecord | None:
    """The run that a closed session was; None: it names no task. `outcomes` are the session's final ones."""
    if said is None or said.task_id is None:
        return None
    judged = next((each.success for each in outcomes if each.evaluator == evaluator), None)
    return RunRecord(
        service=subject.service,
        session_id=subject.session_id,
        agent=subject.agent,
        task_id=said.task_id,
        success=succeeded(said.success, judged),
        ended=subject.seen,
        named_at=said.named_at,
    )


def _is_newer(at: int, by: str, than: int, than_by: str) -> bool:
    return by == than_by or (at, by) > (than, than_by)
