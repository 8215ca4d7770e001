"""The signals of one subject as they are published, from its outcomes: what they share is encoded once.

    {"id":"...", | schema_version ... started, | evaluator ... error}
                   once per subject                     per outcome

The bytes are those of `encode_signal(signal_of(...))`, which makes the few that are too large for this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from collector.base.printable import escape_json_bytes
from collector.records.signal import (
    MAX_BYTES,
    SCHEMA_VERSION,
    Coverage,
    JudgeCost,
    SessionTraces,
    rfc3339,
)
from collector.records.signal_batch import Made, SignalHeader, SubjectHeader, made
from collector.records.subject import Subject, signal_of
from evaluators.model import Failure, Outcome

_encode = msgspec.json.Encoder().encode


class Shared(msgspec.Struct, frozen=True, gc=False):
    """The fields of `Signal` behind its id that the subject decides."""

    schema_version: int
    time: str
    scope: str
    service: str
    agent: str
    agent_version: str | None
    trace_id: str | None
    span_id: str | None
    session_id: str
    session_source: str
    traces: SessionTraces | None
    started: str | None


class Own(msgspec.Struct, frozen=True, gc=False):
    """The fields of `Signal` that follow them, as they stand in the JSON."""

    evaluator: str
    evaluator_version: str
    method: str
    outcome: str
    reason: str | None
    score: float | None
    threshold: float | None
    success: bool | None
    assumed: float | None
    final: bool
    revision: int
    explanation: str | None
    metadata: Mapping[str, Any]
    evidence: tuple[str, ...]
    contradiction: bool
    truncated: str | None
    coverage: Coverage | None
    closed: str | None
    sample: str
    sample_probability: float
    judge: JudgeCost | None
    error: Failure | None


class SubjectSignals:
    """Makes the signals of one subject."""

    __slots__ = ("_shared", "header", "subject")

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        time = rfc3339(subject.seen)
        self.header = SubjectHeader(
            scope=subject.scope,
            service=subject.service,
            agent=subject.agent,
            session_id=subject.session_id,
            session_source=subject.session_source,
            time=time,
            revision=subject.revision,
            agent_version=subject.agent_version,
            trace_id=subject.trace_id,
            span_id=subject.span_id,
            start=subject.start,
        )
        shared = Shared(
            SCHEMA_VERSION,
            time,
            subject.scope,
            subject.service,
            subject.agent,
            subject.agent_version,
            subject.trace_id,
            subject.span_id,
            subject.session_id,
            subject.session_source,
            subject.traces,
            subject.began,
        )
        self._shared = b'",%b,' % escape_json_bytes(_encode(shared))[1:-1]

    def made(self, outcome: Outcome, id_: str, *, probability: float, first: bool) -> Made:
        """The signal of an outcome. `probability`: of the subject being judged; `first`: see `SignalHeader`."""
        json = self._json(outcome, id_, probability)
        if len(json) > MAX_BYTES:
            signal = signal_of(self.subject, outcome, id_, probability=probability)
            return made(signal, first=first, start=self.subject.start)
        header = SignalHeader(
            id=id_,
            evaluator=outcome.evaluator,
            method=outcome.method,
            outcome=outcome.state,
            final=outcome.final,
            score=outcome.score,
            threshold=outcome.threshold,
            success=outcome.success,
            first=first,
            reason=outcome.reason,
            coverage=outcome.coverage,
            error=None if outcome.error is None else outcome.error.type,
            size=len(json),
        )
        return Made(self.header, header, json)

    def _json(self, outcome: Outcome, id_: str, probability: float) -> bytes:
        coverage, judge = outcome.coverage, outcome.judge
        own = Own(
            outcome.evaluator,
            outcome.version,
            outcome.method,
            outcome.state,
            outcome.reason,
            outcome.score,
            outcome.threshold,
            outcome.success,
            outcome.assumed,
            outcome.final,
            self.subject.revision,
            outcome.explanation,
            outcome.metadata,
            outcome.evidence,
            outcome.contradiction,
            outcome.truncated,
            None if coverage is None else Coverage(expected=coverage[0], present=coverage[1]),
            self.subject.closed,
            "random",
            probability,
            None if judge is None else JudgeCost(**asdict(judge)),
            outcome.error,
        )
        tail = escape_json_bytes(_encode(own))
        return b"".join((b'{"id":"', id_.encode(), self._shared, tail[1:]))
