"""The traces that a stopped service's log holds, scored again.

Every trace is read again from its raw spans, stays in the session where it closed, and is scored in a log in memory.
The disk log keeps its records. One is added if the judge was asked: a verdict without a subject that holds the calls
and their cost, so that the budget of the day counts them.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from collector.base.clock import wall
from collector.base.errors import Undecodable
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.judging.budget import DAY
from collector.log.consumer import PoisonReport
from collector.log.disk.disk_log import DiskLog
from collector.log.port import TRACES, Headers, Log, New
from collector.reading.port import ReadJob, reader_settings
from collector.reading.worker import JobRunner
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.span_refs import whole_read
from collector.records.trace_summary import headers_of, packed_trace
from collector.records.traces import TraceRecord, VerdictRecord, decode_traces
from collector.service.evaluation import (
    Closed,
    ClosedSession,
    EvaluationResult,
    score_sessions,
)
from collector.service.logs import groups
from collector.service.offline_service import OfflineService
from collector.service.rooms import start_workers
from collector.service.trace_spool import TraceSpool
from evaluators.plan import Plan

NO_SUBJECT = "replay"  # service, session and subject of the verdict that holds what a replay cost


async def rescore(config: Config, plan: Plan, closed: Closed, *, since: float) -> EvaluationResult:
    """Score all traces whose record is not older than `since` (unix seconds) again; `closed`: with each session.

    Raises DataFolderInUse: the service runs.
    """
    telemetry = Telemetry()
    log = await DiskLog.open(
        config.data_dir / "log",
        max_size=config.log.disk.max_size,
        clock=wall,
        telemetry=telemetry,
        groups=groups(config),
    )
    cost = Cost()
    try:
        with TraceSpool() as traces:
            workers = start_workers(config, plan, telemetry, count=0)
            try:
                again = _ReadingAgain(config, plan, log)
                spent = await _read_history(log, again, since, PoisonReport(telemetry), traces)
                service = OfflineService(config, plan, workers, telemetry)
                await service.put(_spent(0, spent))
                await score_sessions(service, traces, cost.then(closed))
            finally:
                await workers.close()
            return EvaluationResult(traces=traces.usages)
    finally:
        if cost.calls:
            await log.write([_spent(cost.calls, cost.usd)])
        await log.close()


class Cost:
    def __init__(self) -> None:
        self.calls = 0
        self.usd = 0.0

    def then(self, closed: Closed) -> Closed:
        def count(session: ClosedSession) -> None:
            self.calls += sum(each.calls for each in session.verdicts)
            self.usd += sum(each.cost_usd for each in session.verdicts)
            closed(session)

        return count


async def _read_history(
    log: Log, again: _ReadingAgain, since: float, poison: PoisonReport, traces: TraceSpool
) -> float:
    """Put the newest revision of every trace into the spool; returns the USD that the judge was paid today."""
    cost_usd = 0.0
    today = wall() // DAY * DAY
    for partition in range(log.partitions(TRACES)):
        async for record in log.replay(TRACES, partition):
            try:
                decoded = decode_traces(record.value)
            except Undecodable as error:
                poison.unprocessable(record.position, error)
                continue
            if isinstance(decoded, VerdictRecord) and record.time >= today:
                cost_usd += decoded.cost_usd
            elif isinstance(decoded, TraceRecord) and record.time >= since:
                value, headers = await again.read(decoded)
                traces.put(record.key, value, headers)
    return cost_usd


class _ReadingAgain:
    """Reads traces of the log again from their raw spans, and runs the evaluators that are due now."""

    def __init__(self, config: Config, plan: Plan, log: Log) -> None:
        self._log = log
        self._runner = JobRunner(reader_settings(config), plan)

    async def read(self, record: TraceRecord) -> tuple[bytes, Headers]:
        """The record that the trace has now, without its spans: value and headers."""
        if spans := await whole_read(self._log, record.spans):
            job = ReadJob(
                trace_id=bytes.fromhex(record.trace.trace_id),
                pieces=(*spans,),
                closed=record.trace.closed,
            )
            read = self._runner.read_packed(job)
            trace, summary, outcomes = msgspec.Raw(read.packed), read.summary, read.outcomes
        else:  # they did not fit into the record, or have expired: the trace is as it was read then
            trace, summary = msgspec.Raw(packed_trace(record.trace)), b""
            outcomes = encode(self._runner.outcomes(record.trace))
        headers = headers_of(summary, outcomes, revision=record.revision, seen=record.seen)
        return encode(replace(record, trace=trace, spans=())), headers


def _spent(calls: int, cost_usd: float) -> New:
    record = VerdictRecord(
        scope="trace",
        service=NO_SUBJECT,
        session_id=NO_SUBJECT,
        subject=NO_SUBJECT,
        digest="",
        outcomes=(),
        calls=calls,
        cost_usd=cost_usd,
    )
    return New(topic=TRACES, key=session_key(NO_SUBJECT, NO_SUBJECT), value=encode(record))
