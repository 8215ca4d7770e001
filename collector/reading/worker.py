"""Evaluator workers from inside: how a job is run, in the calling process or in one that serves a socket.

    python -m collector.reading.worker FD

The first frame is its settings (JSON), every later one a job; each is answered in order. Payloads are msgpack.
Only here and offline are numpy and the embedder's model imported.
"""

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from google.protobuf.message import DecodeError
from msgspec.structs import replace
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import LogUnavailable, Undecodable
from collector.base.frames import IncompleteFrameError, pack_frame, parent_socket, read_frames
from collector.base.heap import trimmed_heap
from collector.base.plugins import end_if_forked, limit_plugins
from collector.config.plan import checked_plan, embedder_from, expectations_from, failed_outcomes
from collector.log.disk.map_reader import MapReader
from collector.log.port import SPANS
from collector.otlp.redaction import redactor
from collector.otlp.segment import segment_of
from collector.otlp.span_head import head, parse
from collector.otlp.trace_state import stated_randomness
from collector.reading.port import (
    SPANS_MISSING,
    GlanceJob,
    GlanceResult,
    Job,
    PackedTrace,
    PluginJob,
    ReaderSettings,
    ReadJob,
    decode_job,
)
from collector.reading.trace_scoring import TraceScoring, session_outcome
from collector.records.span_refs import Piece, SpanRef
from collector.records.trace_outcomes import TraceOutcomes, packed_outcomes
from collector.records.trace_size import fit_record, room_beside
from collector.records.trace_summary import Summariser, packed_summary, packed_trace, unpacked
from collector.records.trace_views import trace_subject
from collector.records.traces import RunawayRecord
from evaluators.dialects.read import read_trace
from evaluators.dialects.turns.registry import TURN_SPANS
from evaluators.formulas.trace_calls import first_model
from evaluators.matching.repeats import most_asked
from evaluators.model import Closed, Failure, Outcome, Trace
from evaluators.plan import Plan
from evaluators.run import failed, failure_of, score_trace
from evaluators.trace.runaway import may_be_found, model_calls, repeats_missing


def sent_trace_id(pieces: Iterable[bytes]) -> str | None:
    """The id of the trace that the first of these turns began, as 32 hex digits; None: no turn among them began one.

    Claude Code sends a trace for each turn beside its log records: the span of the turn is its root. Where a caller has
    a trace (`TRACEPARENT`), that span has a parent, and several turns may share the caller's trace: that names none.
    A helper's report begins a trace, too, though no person asked: it belongs to the turn before.
    """
    try:
        found = min(_sent(pieces), default=None)
    except (DecodeError, Undecodable):
        return None
    return None if found is None else found[1].hex()


def _sent(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for piece in pieces:
        for resource in parse(piece).resource_spans:
            for scope in resource.scope_spans:
                for raw in scope.spans:
                    segment = segment_of(raw)
                    if segment is None or not segment.has_spans or head(raw).parent_span_id:
                        continue
                    span = Span.FromString(raw)
                    if span.name in TURN_SPANS:
                        yield from ((span.start_time_unix_nano, each) for each in segment.traces)


class PieceReader:
    def __init__(self, log: str | None) -> None:
        """The map of the log in this folder is opened when the first job names spans; None: there is no such log."""
        self._map = None if log is None else MapReader(Path(log))

    def __call__(self, pieces: Sequence[Piece]) -> tuple[bytes, ...] | None:
        """The bytes of all pieces; None: they cannot all be read here."""
        refs = [
            (each.partition, each.offset, each.start, each.end)
            for each in pieces
            if isinstance(each, SpanRef)
        ]
        if refs and self._map is None:
            return None
        try:
            found = iter(self._map.read(SPANS, refs) if self._map and refs else ())
        except LogUnavailable:
            return None
        read = [next(found) if isinstance(each, SpanRef) else each for each in pieces]
        whole = tuple(each for each in read if each is not None)
        return whole if len(whole) == len(read) else None


def only_bytes(pieces: Sequence[Piece]) -> tuple[bytes, ...] | None:
    """The same in the process that holds the log, which must not open its file twice: what came as bytes."""
    whole = tuple(each for each in pieces if not isinstance(each, SpanRef))
    return whole if len(whole) == len(pieces) else None


ReadPieces = Callable[[Sequence[Piece]], tuple[bytes, ...] | None]
NICENESS = 10
"""The receiver and the writer go first: a trace may be scored later, a span is lost."""
UNKNOWN_SERVICE = "unknown_service"
_log = logging.getLogger(__name__)


class JobRunner:
    """Runs jobs; made once per worker, with everything that a job needs."""

    def __init__(
        self,
        settings: ReaderSettings,
        plan: Plan | None = None,
        *,
        read_pieces: ReadPieces = only_bytes,
    ) -> None:
        """Loads the embedder if an evaluator needs it. `read_pieces` gives the bytes of a job's spans."""
        self._read_pieces = read_pieces
        self._plan = plan or checked_plan(settings.plan)
        self._keys = settings.keys
        self._plugins = {each.spec.name: each for each in self._plan.plugins}
        due = (*self._plan.trace, *self._plan.plugins)
        embeds = any("embedder" in each.spec.needs for each in due)
        self._scoring = TraceScoring(
            self._plan,
            embedder_from(settings.plan) if embeds else None,
            expectations_from(settings.plan),
        )
        self._summariser = Summariser(settings.read_only)
        # Not all spans in the log came through a receiver that had these patterns.
        self._redactor = redactor(settings.redaction)

    def read(self, job: ReadJob) -> Trace:
        """The normalised trace, cut where its record would be too large for the log.

        For one that cannot be read, its id and the reason in `unread`.
        """
        return self._read(job, self._read_pieces(job.pieces))

    def read_packed(self, job: ReadJob) -> PackedTrace:
        pieces = self._read_pieces(job.pieces)
        trace, changed = job.kept(self._read(job, pieces))
        outcomes = self.outcomes(trace, is_scored=job.is_scored)
        randomness = stated_randomness(pieces or ())
        return packed(
            trace, outcomes, job, self._summariser, session_changed=changed, randomness=randomness
        )

    def outcomes(self, trace: Trace, *, is_scored: bool = True) -> TraceOutcomes:
        """What evaluators say of a trace; not `is_scored`: that they could not be run."""
        if is_scored or trace.unread is not None:
            return self._scoring.outcomes(trace)
        message = "the worker died or hung each time that it scored this trace"
        return TraceOutcomes(failed_outcomes(self._plan, "worker_died", message))

    def _read(self, job: ReadJob, pieces: tuple[bytes, ...] | None) -> Trace:
        if pieces is None:
            return bare_trace(job.trace_id, job.closed, SPANS_MISSING)
        try:
            clean = pieces if self._redactor is None else tuple(map(self._redactor.piece, pieces))
            trace = read_trace(
                clean, trace_id=trace_id_of(job, pieces), closed=job.closed, keys=self._keys
            )
            return fit_record(trace, pieces)
        except Exception as error:  # noqa: BLE001 - one trace must not end the worker
            _log.warning("Trace `%s` cannot be read: %r", job.trace_id.hex(), error)
            return bare_trace(job.trace_id, job.closed, "undecodable")

    def plugin(self, job: PluginJob) -> Outcome:
        evaluator = self._plugins[job.evaluator]
        if job.session is not None:
            return session_outcome(evaluator, job.session)
        try:
            trace = unpacked(job.trace)
        except Undecodable as error:  # the main process has looked at a few of its fields alone
            return failed(evaluator, Failure(type="undecodable", message=str(error)))
        return self._scoring.plugin(evaluator, trace, job.history, job.turn)

    def glance(self, job: GlanceJob) -> GlanceResult:
        """What is to be said of the open trace: nothing, unless it runs away or what is usual for its agent decides."""
        trace = self.read(ReadJob(trace_id=job.trace_id, pieces=job.pieces, closed="idle"))
        if trace.unread is not None:
            return GlanceResult()
        share = (1 + model_calls(trace)) / (1 + trace.spans)
        if job.is_part:
            return GlanceResult(calls=most_asked(trace.tool_calls), call_share=share)
        for each in self._plan.trace:
            if each.spec.name == "runaway":
                (outcome,) = score_trace(self._plan, trace, only={"runaway"})
                found = may_be_found(outcome, model_calls(trace))
                return GlanceResult(
                    record=_runaway_record(job, trace, outcome) if found else None,
                    repeats_missing=repeats_missing(trace, each.options),
                    call_share=share,
                )
        return GlanceResult(call_share=share)

    def run(self, job: Job) -> PackedTrace | GlanceResult | Outcome:
        if isinstance(job, ReadJob):
            return self.read_packed(job)
        return self.guarded(job) if isinstance(job, PluginJob) else self.glance(job)

    def guarded(self, job: PluginJob) -> Outcome:
        """In a worker alone: elsewhere Ctrl-C and an exit are the caller's."""
        pid = os.getpid()
        try:
            return self.plugin(job)
        except BaseException as error:  # noqa: BLE001 - SystemExit is as much its own outcome
            return failed(self._plugins[job.evaluator], failure_of(error))
        finally:
            end_if_forked(pid)


def packed(
    trace: Trace,
    outcomes: TraceOutcomes,
    job: ReadJob,
    summariser: Summariser,
    *,
    session_changed: bool,
    randomness: int | None = None,
) -> PackedTrace:
    """The answer to a job: the trace that was read for it, and what is said of it."""
    raw = packed_trace(trace)
    room = room_beside(raw, job.pieces)
    summary = packed_summary(summariser.summary(trace), room)
    return PackedTrace(
        service=trace.service,
        session_id=trace.session_id,
        gaps=trace.gaps,
        unread=trace.unread,
        session_changed=session_changed,
        randomness=randomness,
        packed=raw,
        summary=summary,
        outcomes=packed_outcomes(outcomes, room - len(summary)),
    )


def _runaway_record(job: GlanceJob, trace: Trace, outcome: Outcome) -> RunawayRecord:
    return RunawayRecord(
        subject=trace_subject(trace, seen=job.seen, revision=job.revision, closed=None),
        model=first_model(trace),
        model_calls=model_calls(trace),
        digest=trace.digest,
        outcome=replace(outcome, final=False),
    )


def trace_id_of(job: ReadJob, pieces: Sequence[bytes]) -> str:
    """The id by which the trace of these spans goes: 32 hex digits."""
    return (sent_trace_id(pieces) if job.is_made else None) or job.trace_id.hex()


def bare_trace(trace_id: bytes, closed: Closed, unread: str) -> Trace:
    """A trace that could not be read: only its id is known."""
    text = trace_id.hex()
    return Trace(
        trace_id=text,
        service=UNKNOWN_SERVICE,
        agent=UNKNOWN_SERVICE,
        session_id=text,
        session_source="trace",
        closed=closed,
        gaps=("no_root", "no_session", "no_content"),
        unread=unread,
    )


class InlineWorkers:
    """The `Workers` port without processes, for tests and small loads. A job that hangs hangs its caller."""

    def __init__(self, runner: JobRunner) -> None:
        self._runner = runner

    async def read(self, jobs: Sequence[ReadJob]) -> Sequence[PackedTrace]:
        return [self._runner.read_packed(job) for job in jobs]

    async def plugin(self, job: PluginJob) -> Outcome:
        return self._runner.plugin(job)

    async def glance(self, job: GlanceJob) -> GlanceResult:
        return self._runner.glance(job)

    async def watch(self) -> None:
        """There is no process that could end."""

    def hasten(self) -> None:
        """See the port: inline jobs are answered at once."""

    async def close(self) -> None:
        """There is no process to end."""


def main() -> None:
    """Work until the other side closes the socket."""
    # The main process may end while a worker starts or works: that needs no traceback.
    with (
        parent_socket(NICENESS) as link,
        trimmed_heap(),
        contextlib.suppress(ConnectionError, IncompleteFrameError),
    ):
        work(link)


def work(link: socket.socket) -> None:
    """Answer every job of the socket, in order.

    Raises ConnectionError: the main process ended before it had its answer. Raises IncompleteFrameError: the main
    process ended while it sent a job.
    """
    with link.makefile("rb", buffering=1 << 16) as stream:
        payloads = read_frames(stream)
        packed_settings = next(payloads, None)
        if packed_settings is None:
            return
        settings = msgspec.json.decode(packed_settings, type=ReaderSettings)
        if settings.plan.plugins or settings.plan.installed:
            limit_plugins()
        runner = JobRunner(settings, read_pieces=PieceReader(settings.log))
        encode = msgspec.msgpack.Encoder().encode
        link.sendall(pack_frame(b"ready"))
        for payload in payloads:
            job = decode_job(payload)
            link.sendall(pack_frame(encode(runner.run(job))))


if __name__ == "__main__":
    main()
