"""The traces that a stopped service's log holds, scored again.

Every trace is read again from its raw spans, stays in the session where it closed, and is scored in a log in memory.
The disk log keeps its records. One is added if the judge was asked: a verdict without a subject that holds the calls
and their cost, so that the budget of the day counts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from collector.clock import wall
from collector.config.tree import Config
from collector.errors import Undecodable
from collector.judging.budget import DAY
from collector.log.consumer import PoisonReport
from collector.log.disk.disk_log import DiskLog
from collector.log.port import TRACES, Log, New
from collector.offline.recordings import EvaluationResult
from collector.pool.port import ReadJob
from collector.pool.worker import InlineWorkers, JobRunner
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.traces import TraceRecord, VerdictRecord, decode_traces
from collector.telemetry import Telemetry
from collector.wiring.logs import groups
from collector.wiring.offline_service import OfflineService
from evaluators.plan import Plan

NO_SUBJECT = "replay"
"""Service, session and subject of the verdict that holds what a replay cost."""


@dataclass(slots=True)
class _History:
    traces: dict[str, New] = field(default_factory=dict[str, New])
    """By trace id, the record of its newest revision."""
    cost_usd: float = 0.0
    """What the judge was paid today."""


async def rescore(
    config: Config, plan: Plan, *, since: float, only: Sequence[str] | None
) -> EvaluationResult:
    """Score all traces whose record is not older than `since` (unix seconds) again.

    Raises:
        DataFolderInUse: the service runs.
    """
    telemetry = Telemetry()
    runner = JobRunner(config, plan)
    log = await DiskLog.open(
        config.data_dir / "log",
        max_size=config.log.disk.max_size,
        clock=wall,
        telemetry=telemetry,
        groups=groups(config),
    )
    try:
        history = await _history(log, runner, since, PoisonReport(telemetry))
        service = OfflineService(config, plan, InlineWorkers(runner), telemetry, only=only)
        await service.put(_spent(0, history.cost_usd))
        for record in history.traces.values():
            await service.put(record)
            await asyncio.sleep(0)
        await service.score()
        await _write_cost(log, service, history)
        return EvaluationResult(traces=await service.traces(), signals=await service.signals())
    finally:
        await log.close()


async def _history(log: Log, runner: JobRunner, since: float, poison: PoisonReport) -> _History:
    history = _History()
    today = wall() // DAY * DAY
    for partition in range(log.partitions(TRACES)):
        async for record in log.replay(TRACES, partition):
            try:
                decoded = decode_traces(record.value)
            except Undecodable as error:
                poison.unprocessable(record.position, error)
                continue
            if isinstance(decoded, VerdictRecord) and record.time >= today:
                history.cost_usd += decoded.cost_usd
            elif isinstance(decoded, TraceRecord) and record.time >= since:
                again = _read_again(decoded, runner)
                history.traces.pop(decoded.trace.trace_id, None)
                history.traces[decoded.trace.trace_id] = New(
                    topic=TRACES, key=record.key, value=encode(again)
                )
    return history


def _read_again(record: TraceRecord, runner: JobRunner) -> TraceRecord:
    if not record.spans:  # they did not fit into the record: the trace is as it was read then
        return record
    job = ReadJob(
        trace_id=bytes.fromhex(record.trace.trace_id),
        pieces=record.spans,
        closed=record.trace.closed,
    )
    return msgspec.structs.replace(record, trace=runner.read(job), spans=())


async def _write_cost(log: Log, service: OfflineService, history: _History) -> None:
    """Add what this replay was charged to the disk log."""
    verdicts = await service.verdicts()
    if calls := sum(each.calls for each in verdicts):
        cost = sum(each.cost_usd for each in verdicts) - history.cost_usd
        await log.write([_spent(calls, max(0.0, cost))])


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
