"""What a signal is about, and the signal that an outcome of it becomes. Pure: the same outcome is the same signal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

import msgspec

from collector.records.signal import (
    Coverage,
    JudgeCost,
    SessionTraces,
    Signal,
    SignalError,
    rfc3339,
)
from evaluators.model import Closed, Outcome, Scope, SessionClosed


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What was scored: a trace, or a session as its window stood."""

    scope: Scope
    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None
    seen: float
    """Log time at which its newest span was first seen: the signal's `time`."""
    revision: int
    closed: Literal[Closed, SessionClosed] | None
    trace_id: str | None = None
    span_id: str | None = None
    start: int = 0
    """Of the trace, as its session orders it; unix nanoseconds."""
    started: int = 0
    """Likewise, of the first revision of the trace, or of the session's first trace; 0: `start` is it."""
    first_trace: str | None = None
    newest_trace: str | None = None
    """The ends of the session, for tools that hang its scores on a trace; None: not known, or not a session."""

    @property
    def traces(self) -> SessionTraces | None:
        if self.first_trace is None or self.newest_trace is None:
            return None
        return SessionTraces(first=self.first_trace, newest=self.newest_trace)

    @property
    def began(self) -> str | None:
        """The start of its first span as the signal has it; None: the sender gave none."""
        nanoseconds = self.started or self.start
        return rfc3339(nanoseconds / 1e9) if nanoseconds else None


def shared_fields(source: msgspec.Struct, target: type[msgspec.Struct]) -> dict[str, Any]:
    names, values_of = _shared(type(source), target)
    return dict(zip(names, values_of(source), strict=True))


@lru_cache
def _shared(
    source: type[msgspec.Struct], target: type[msgspec.Struct]
) -> tuple[tuple[str, ...], Callable[[object], tuple[Any, ...]]]:
    names = tuple(name for name in source.__struct_fields__ if name in target.__struct_fields__)
    return names, attrgetter(*names)


def signal_of(subject: Subject, outcome: Outcome, id_: str, *, probability: float = 1.0) -> Signal:
    """The signal of an outcome; `probability`: of its subject being judged."""
    error = outcome.error
    coverage = outcome.coverage
    return Signal(
        scope=subject.scope,
        service=subject.service,
        agent=subject.agent,
        agent_version=subject.agent_version,
        trace_id=subject.trace_id,
        span_id=subject.span_id,
        session_id=subject.session_id,
        session_source=subject.session_source,
        traces=subject.traces,
        started=subject.began,
        revision=subject.revision,
        closed=subject.closed,
        id=id_,
        time=rfc3339(subject.seen),
        evaluator=outcome.evaluator,
        evaluator_version=outcome.version,
        method=outcome.method,
        outcome=outcome.state,
        reason=outcome.reason,
        score=outcome.score,
        threshold=outcome.threshold,
        success=outcome.success,
        assumed=outcome.assumed,
        final=outcome.final,
        explanation=outcome.explanation,
        metadata=outcome.metadata,
        evidence=outcome.evidence,
        contradiction=outcome.contradiction,
        truncated=outcome.truncated,
        coverage=coverage and Coverage(expected=coverage[0], present=coverage[1]),
        sample_probability=probability,
        judge=outcome.judge and JudgeCost(**asdict(outcome.judge)),
        error=error and SignalError(type=error.type, message=error.message),
    )
