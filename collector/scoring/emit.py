"""Outcome -> Signal -> record of topic `signals`. Pure: the same outcome of the same subject is the same bytes."""

from __future__ import annotations

import msgspec

from collector.log.port import SIGNALS, New
from collector.records.sessions import SessionTurn
from collector.records.signal import (
    Coverage,
    JudgeCost,
    Signal,
    SignalError,
    rfc3339,
    signal_id,
    trace_input_digest,
)
from collector.records.signal_codec import encode_signal, redacted, signal_headers
from collector.records.traces import TraceRecord
from collector.scoring.ports import Rules
from evaluators.model import Closed, JudgeUse, Outcome, Scope, Trace, Turn


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What was scored: a trace, or a session as its window stood."""

    scope: Scope
    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None
    seen: float
    revision: int
    closed: Closed | None
    trace_id: str | None = None
    span_id: str | None = None

    @property
    def id(self) -> str:
        """The subject of the signal's id."""
        return self.trace_id if self.trace_id is not None else self.session_id


def trace_subject(record: TraceRecord, *, service: str, session_id: str) -> Subject:
    """The trace of a record, in the session that holds it."""
    trace = record.trace
    return Subject(
        scope="trace",
        service=service,
        session_id=session_id,
        session_source=trace.session_source,
        agent=trace.agent,
        agent_version=trace.agent_version,
        seen=record.seen,
        revision=record.revision,
        closed=trace.closed,
        trace_id=trace.trace_id,
        span_id=trace.root_span_id,
    )


def turn_subject(entry: SessionTurn) -> Subject:
    """The trace of a turn, as its record said it."""
    return Subject(
        scope="trace",
        service=entry.service,
        session_id=entry.session_id,
        session_source=entry.session_source,
        agent=entry.agent,
        agent_version=entry.agent_version,
        seen=entry.seen,
        revision=entry.revision,
        closed=entry.closed,
        trace_id=entry.turn.trace_id,
        span_id=entry.span_id,
    )


def trace_signal_id(service: str, trace: Trace | Turn, outcome: Outcome) -> str:
    """The id of one outcome of a trace."""
    read = trace_input_digest(trace.digest, outcome.compared, outcome.expectation)
    return signal_id(
        scope="trace", service=service, subject=trace.trace_id, outcome=outcome, input_digest=read
    )


def session_signal_id(subject: Subject, outcome: Outcome, input_digest: str) -> str:
    """The id of one outcome of a session."""
    return signal_id(
        scope="session",
        service=subject.service,
        subject=subject.id,
        outcome=outcome,
        input_digest=input_digest,
    )


def signal_of(subject: Subject, outcome: Outcome, id_: str, *, probability: float = 1.0) -> Signal:
    """The outcome as it is published; `probability` is that of its subject being in the sample."""
    error = outcome.error
    coverage = outcome.coverage
    return Signal(
        id=id_,
        time=rfc3339(subject.seen),
        scope=subject.scope,
        service=subject.service,
        agent=subject.agent,
        agent_version=subject.agent_version,
        trace_id=subject.trace_id,
        span_id=subject.span_id,
        session_id=subject.session_id,
        session_source=subject.session_source,
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
        revision=subject.revision,
        explanation=outcome.explanation,
        metadata=outcome.metadata,
        evidence=outcome.evidence,
        contradiction=outcome.contradiction,
        truncated=outcome.truncated,
        coverage=coverage and Coverage(expected=coverage[0], present=coverage[1]),
        closed=subject.closed,
        sample_probability=probability,
        judge=outcome.judge and _cost(outcome.judge),
        error=error and SignalError(type=error.type, message=error.message),
    )


def _cost(use: JudgeUse) -> JudgeCost:
    return JudgeCost(
        model=use.model,
        calls=use.calls,
        input_tokens=use.input_tokens,
        output_tokens=use.output_tokens,
        cost_usd=use.cost_usd,
        cached=use.cached,
    )


def new_signal(signal: Signal, *, first: bool, redact: bool) -> New:
    """The record that publishes it, keyed by session id."""
    shown = redacted(signal) if redact else signal
    return New(
        topic=SIGNALS,
        key=signal.session_id.encode(),
        value=encode_signal(shown),
        headers=signal_headers(shown, first=first),
    )


def outcome_signal(
    subject: Subject, outcome: Outcome, id_: str, *, first: bool, rules: Rules, redact: bool
) -> New:
    """The record that publishes an outcome; `first`: it is its (subject, evaluator)'s first final one."""
    probability = rules.judged.probability if rules.judged.judges(outcome) else 1.0
    signal = signal_of(subject, outcome, id_, probability=probability)
    return new_signal(signal, first=first, redact=redact)
