"""Traces as signals, session after session, in the order in which the sessions close.

A recording has one log time, so the order of closing is that of (newest span's end, session id). Memory holds the
traces and the signals of a few sessions.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.log.port import SIGNALS, Record
from collector.otlp.split import Piece
from collector.records.sent_feedback import SentFeedback
from collector.records.sessions import session_key
from collector.records.signal_batch import signals_in
from collector.records.trace_summary import packed_outline
from collector.records.trace_views import TraceUsage, decode_report
from collector.records.traces import RunRecord, SessionRecord, VerdictRecord
from collector.service.offline_service import OfflineService
from collector.service.recorded_scores import RecordedScores
from collector.service.recorded_traces import Progress, RecordedTraces
from collector.service.rooms import start_workers
from collector.service.trace_spool import TraceSpool
from evaluators.plan import Plan

SMALL = 8 << 20
"""Bytes of recordings below which starting worker processes takes longer than scoring inline."""


@dataclass(slots=True, kw_only=True)
class ClosedSession:
    """A session that has closed, with everything that is said about it."""

    key: bytes
    number: int  # its place in the order of closing, from 1
    of: int  # how many sessions close
    record: SessionRecord | None = None
    run: RunRecord | None = None  # None: the session was not a run of a task
    verdicts: list[VerdictRecord] = field(default_factory=list[VerdictRecord])
    """What the judge answered about its traces and about itself."""
    traces: list[Record] = field(default_factory=list[Record])  # their records, without spans
    signals: list[bytes] = field(default_factory=list[bytes])
    """JSON of its final signals, one for each (trace or session, evaluator): of its traces, then its own."""

    def take(self, record: Record) -> None:
        """A record of topic `traces` that is about it."""
        match decode_report(record.value):
            case SessionRecord() as found:
                self.record = found
            case RunRecord() as found:
                self.run = found
            case VerdictRecord() as found:
                self.verdicts.append(found)
            case _ if packed_outline(record.headers) is not None:
                self.traces.append(record)
            case _:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """What is known when all sessions have closed."""

    traces: Sequence[TraceUsage]  # the newest revision of every trace
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])  # bytes of spans, by trace id
    rejected: int = 0  # spans that the receiver would have rejected
    reasons: Sequence[str] = ()  # why the first few were


Closed = Callable[[ClosedSession], None]
"""Called with each session, in the order in which they close."""


async def evaluate_recordings(
    config: Config,
    plan: Plan,
    files: Sequence[Path],
    progress: Progress,
    closed: Closed,
) -> EvaluationResult:
    """Score recordings; `closed` is called with each session.

    Raises ConfigError: a file cannot be read, or holds no export requests of its signal; `closed` was not called.
    """
    count = config.worker_count if _size(files) >= SMALL else 0
    async with _service(config, plan, count) as (service, recorded):
        await recorded.read(service, files, progress)
        await score_sessions(
            service, recorded.closed, _with_scores(config, recorded.scores, closed)
        )
        return EvaluationResult(
            traces=recorded.closed.usages,
            sizes=recorded.sizes,
            rejected=recorded.rejected,
            reasons=recorded.reasons,
        )


async def evaluate_traces(
    config: Config,
    plan: Plan,
    pieces: Iterable[Piece],
    trace_ids: Collection[str],
    closed: Closed,
    *,
    scores: Iterable[SentFeedback] = (),
    inline: bool = False,
) -> None:
    """Score these traces of what `RecordedTraces` has read; `closed` is called with each session.

    `scores`: those of others, which are read along. `inline`: in this process, as evaluators must be that no other
    process can import.
    """
    async with _service(config, plan, 0, inline=inline) as (service, recorded):
        await recorded.put(service, pieces)
        recorded.closed.keep(trace_ids)
        await score_sessions(service, recorded.closed, _with_scores(config, scores, closed))


@asynccontextmanager
async def _service(
    config: Config,
    plan: Plan,
    workers: int,
    *,
    inline: bool = False,
) -> AsyncGenerator[tuple[OfflineService, RecordedTraces]]:
    telemetry = Telemetry()
    started = start_workers(config, plan, telemetry, count=workers, in_this_process=inline)
    try:
        with RecordedTraces() as recorded:
            yield OfflineService(config, plan, started, telemetry), recorded
    finally:
        await started.close()


def _with_scores(config: Config, given: Iterable[SentFeedback], closed: Closed) -> Closed:
    """`closed`, with the signals of scores of others behind ours."""
    scores = RecordedScores(config, given)

    def both(session: ClosedSession) -> None:
        session.signals += scores.signals(session.key, session.traces, session.record)
        closed(session)

    return both


async def score_sessions(service: OfflineService, traces: TraceSpool, closed: Closed) -> None:
    """Score all sessions, a few at a time; `closed` is called with each, its signals complete, in order of closing."""
    keys = traces.closings()
    numbers = count(1)
    async with service.standing():
        for some, records in traces.batches(keys):
            sessions = {
                key: ClosedSession(key=key, number=next(numbers), of=len(keys)) for key in some
            }
            _complete(sessions, await service.score(records))
            for session in sessions.values():
                closed(session)


def _complete(sessions: Mapping[bytes, ClosedSession], written: Iterable[Record]) -> None:
    signals: dict[bytes, dict[tuple[object, ...], bytes]] = {key: {} for key in sessions}
    for record in written:
        if record.position.topic == SIGNALS:
            for each in signals_in(record):
                if each.header.final:
                    # A trace is scored again when an earlier one comes after it: the newest signal counts.
                    about, head = each.subject, each.header
                    subject = about.scope, about.trace_id, head.evaluator, head.method
                    key = session_key(about.service, about.session_id)
                    signals[key][subject] = each.json
            continue
        session = sessions.get(record.key)
        if session is not None:  # what a replay says about the spend before it is of no session
            session.take(record)
    for key, session in sessions.items():
        session.signals = [*signals[key].values()]


def _size(files: Iterable[Path]) -> int:
    """Bytes of spans, about: what is compressed counts eight times."""
    return sum(each.stat().st_size * (8 if each.suffix == ".gz" else 1) for each in files)
