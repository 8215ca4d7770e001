"""A subject to be judged, while it waits and as a job. What waits holds no content: that is read back from the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from collector.base.errors import Undecodable
from collector.judging.port import Job, SessionJob, TraceJob
from collector.judging.progress import Progress
from collector.judging.session_turns import PlacedTurn, newest_traces, previous_turns
from collector.log.port import Position
from collector.records.trace_views import RawTrace, decode_raw_trace
from collector.records.traces import GetRecord, SessionRecord, VerdictRecord

Content: TypeAlias = RawTrace | SessionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSubject:
    """A trace or a session to be judged."""

    position: Position
    key: bytes
    time: float
    """Of its record in the log."""
    progress: Progress
    """Of its partition."""
    verdict: VerdictRecord
    """Without outcomes yet."""
    turn: int | None = None
    """The trace's number in its session, 1-based; None = unknown, or a session."""
    before: Sequence[PlacedTurn] = ()
    """The turns before the trace that evaluators compare it with, oldest first."""

    @property
    def service(self) -> str:
        """Whose share of the budget it uses."""
        return self.verdict.service

    @property
    def owner(self) -> str:
        verdict = self.verdict
        return "/".join((verdict.scope, verdict.service, verdict.subject, verdict.digest))


async def read_back(get: GetRecord, subject: JudgedSubject) -> Content | None:
    """The content of a subject that waited; None when the log has it no more."""
    record = await get(subject.position)
    if record is None:
        return None
    try:
        decoded = decode_raw_trace(record.value)
    except Undecodable:
        return None
    return decoded if isinstance(decoded, RawTrace | SessionRecord) else None


async def job_of(get: GetRecord, subject: JudgedSubject, content: Content) -> Callable[[int], Job]:
    """Makes the subject's job, given the job's number."""
    if isinstance(content, RawTrace):
        history = await previous_turns(get, subject.position.partition, subject.before)
        return lambda number: TraceJob(
            id=number,
            owner=subject.owner,
            service=subject.service,
            trace=content.trace,
            turn=subject.turn,
            history=history,
        )
    traces = await newest_traces(get, subject.position.partition, content.traces)
    return lambda number: SessionJob(
        id=number,
        owner=subject.owner,
        service=subject.service,
        session_id=content.session_id,
        closed=content.closed,
        traces=traces,
    )
