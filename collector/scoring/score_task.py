"""A trace that was placed in its session, scored by the workers together with the turns whose predecessors changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from collector.reading.port import ScoreJob, Workers
from collector.records.sessions import SessionTurn
from collector.records.trace_views import SummarisedTrace
from collector.records.traces import TraceReader, previous_trace
from collector.scoring.effects import Rescored, Task
from evaluators.model import Outcome, Previous


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTask:
    """The outcomes of a task, and of those of its reruns whose record the log still has."""

    task: Task
    outcomes: tuple[Outcome, ...]
    rescored: tuple[Rescored, ...]


async def score_task(
    task: Task,
    reader: TraceReader[SummarisedTrace],
    *,
    workers: Workers,
    history_takers: tuple[str, ...],
) -> ScoredTask:
    """Run the evaluators of a task; for its reruns only those that take history."""
    history = await _history(task.history, reader)
    jobs = [ScoreJob(trace=task.trace, history=history, turn=task.number)]
    reruns: list[SessionTurn] = []
    for rerun in task.reruns:
        record = await _read_back(rerun.entry, reader)
        if record is None:
            continue
        reruns.append(rerun.entry)
        history = await _history(rerun.history, reader)
        jobs.append(ScoreJob(trace=record, history=history, only=history_takers))
    own, *others = await workers.score(jobs)
    rescored = (
        Rescored(entry=entry, outcomes=outcomes)
        for entry, outcomes in zip(reruns, others, strict=True)
    )
    return ScoredTask(task=task, outcomes=own, rescored=tuple(rescored))


async def _read_back(
    entry: SessionTurn, reader: TraceReader[SummarisedTrace]
) -> SummarisedTrace | None:
    """The trace's newest record; None: it has expired, or the log has another trace in its place."""
    record = await reader.trace(entry.offset)
    if record is None or record.summary.turn.digest != entry.turn.digest:
        return None
    return record


async def _history(
    entries: Iterable[SessionTurn], reader: TraceReader[SummarisedTrace]
) -> tuple[Previous, ...]:
    """Earlier turns as evaluators see them, the newest last; outputs that state no longer keeps come from the log."""
    history: list[Previous] = []
    for entry in entries:
        question, answer = entry.turn.input, entry.turn.output
        if not entry.kept:
            record = await _read_back(entry, reader)
            question = None if record is None else record.summary.turn.input
            answer = None if record is None else record.summary.turn.output
        history.append(previous_trace(entry.turn.trace_id, entry.turn.digest, question, answer))
    return tuple(history)
