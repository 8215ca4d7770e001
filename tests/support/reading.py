"""Workers that read a trace with the full schema: just enough of a trace for assembly to write."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.reading.port import (
    SPANS_MISSING,
    GlanceJob,
    GlanceResult,
    PackedTrace,
    PluginJob,
    ReadJob,
)
from collector.reading.worker import bare_trace, only_bytes, packed, trace_id_of
from collector.records.subject import Subject
from collector.records.trace_outcomes import TraceOutcomes
from collector.records.trace_summary import Summariser
from collector.records.traces import RunawayRecord
from evaluators.digest import trace_digest
from evaluators.model import Gap, Outcome, Root, Trace


@dataclass(slots=True, kw_only=True)
class ReadingWorkers:
    """Answers at once, or once its gate is open; raises `failures` first; cannot read `poison` trace ids.

    An open trace of `suspicious` spans or more may run away.
    """

    poison: set[bytes] = field(default_factory=set[bytes])
    failures: list[Exception] = field(default_factory=list[Exception])
    gate: asyncio.Event | None = None
    glance_gate: asyncio.Event | None = None
    jobs: list[ReadJob] = field(default_factory=list[ReadJob])
    glances: list[GlanceJob] = field(default_factory=list[GlanceJob])
    suspicious: int = 1_000_000

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[PackedTrace | None]:
        self.jobs += jobs
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        return [None if job.trace_id in self.poison else packed_read(job) for job in jobs]

    off: frozenset[str] = frozenset()

    async def plugin(self, job: PluginJob) -> Outcome:
        raise NotImplementedError

    async def glance(self, job: GlanceJob) -> GlanceResult:
        self.glances.append(job)
        await asyncio.sleep(0)
        if self.glance_gate is not None:
            await self.glance_gate.wait()
        trace = read(ReadJob(trace_id=job.trace_id, pieces=job.pieces, closed="idle"))
        return GlanceResult(record=suspect(trace, job) if trace.spans >= self.suspicious else None)

    def hasten(self) -> None:
        return

    async def close(self) -> None:
        return


def packed_read(job: ReadJob) -> PackedTrace:
    trace, changed = job.kept(read(job))
    return packed(trace, TraceOutcomes(), job, Summariser(), session_changed=changed)


def read(job: ReadJob) -> Trace:
    pieces = only_bytes(job.pieces)
    if pieces is None:
        return bare_trace(job.trace_id, job.closed, SPANS_MISSING)
    spans: list[tuple[str, Span]] = []
    for piece in pieces:
        for resource in ExportTraceServiceRequest.FromString(piece).resource_spans:
            service = _text(resource.resource.attributes, "service.name") or "unknown"
            spans += [(service, span) for scope in resource.scope_spans for span in scope.spans]
    assert all(
        span.trace_id == job.trace_id or span.trace_state.startswith("spanwise=")
        for _, span in spans
    )
    ids = [span.span_id.hex() for _, span in spans]
    assert len(set(ids)) == len(ids), "a span reached the worker twice"
    spans.sort(key=lambda each: (each[1].start_time_unix_nano, each[1].span_id))
    roots = [each for each in spans if not any(each[1].parent_span_id)]
    service, first = roots[0] if roots else spans[0]
    session = _text(first.attributes, "session.id")
    gaps: list[Gap] = [] if roots else ["no_root"]
    found: Root = "parentless" if roots else "missing"
    return Trace(
        trace_id=trace_id_of(job, pieces),
        service=service,
        agent=service,
        session_id=session or job.trace_id.hex(),
        session_source="session.id" if session else "trace",
        root=found,
        root_span_id=first.span_id.hex(),
        closed=job.closed,
        spans=len(spans),
        gaps=tuple(gaps if session else [*gaps, "no_session"]),
        start_time_unix_nano=spans[0][1].start_time_unix_nano,
        digest=trace_digest(ids),
    )


def suspect(trace: Trace, job: GlanceJob) -> RunawayRecord:
    """The trace as one that repeated a call ten times."""
    subject = Subject(
        scope="trace",
        service=trace.service,
        session_id=trace.session_id,
        session_source=trace.session_source,
        agent=trace.agent,
        agent_version=None,
        seen=job.seen,
        revision=job.revision,
        closed=None,
        trace_id=trace.trace_id,
        span_id=trace.root_span_id,
    )
    outcome = Outcome(
        evaluator="runaway",
        version="1",
        method="deterministic",
        state="scored",
        score=0.0,
        success=False,
        final=False,
        metadata={"most_of_one_call": 10},
    )
    return RunawayRecord(subject=subject, model_calls=0, digest=trace.digest, outcome=outcome)


def _text(attributes: Sequence[KeyValue], key: str) -> str | None:
    return next((each.value.string_value for each in attributes if each.key == key), None)
