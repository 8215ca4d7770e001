"""What a stopped service's log holds, scored again: traces copied to a log in memory, the desks run over them.

Every trace is made again from its raw spans, in the session where it closed. What the judge is paid for it stands
in the log afterwards as a verdict about nobody, so that the budget of the day holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from collector.clock import wall
from collector.config.tree import Config
from collector.judging.budget import DAY
from collector.log.disk.disk_log import DiskLog
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, TRACES, Log, New
from collector.offline.evaluate import UNLIMITED, Offline, score
from collector.pool.inline import InlineWorkers
from collector.pool.jobs import Bench
from collector.pool.port import ReadJob
from collector.records.codec import encode
from collector.records.session_key import session_key
from collector.records.traces import TraceRecord, VerdictRecord, decode_traces
from collector.telemetry import Telemetry
from collector.wiring.groups import groups
from evaluators.run import Plan

NOBODY = "replay"


@dataclass(slots=True)
class _Found:
    traces: dict[str, New] = field(default_factory=dict[str, New])
    calls: int = 0
    cost_usd: float = 0.0


async def rescored(
    config: Config, plan: Plan, *, since: float, only: Sequence[str] | None
) -> Offline:
    """The signals of all traces whose record is not older than `since` (unix seconds).

    Raises:
        DataFolderInUse: the service runs.
    """
    telemetry = Telemetry()
    bench = Bench.of(config, plan)
    log = await DiskLog.open(
        config.data_dir / "log",
        max_size=config.log.disk.max_size,
        clock=wall,
        telemetry=telemetry,
        groups=groups(config),
    )
    try:
        found = await _found(log, bench, since)
        trace_log = await _copied(found)
        await score(config, plan, trace_log, InlineWorkers(bench), telemetry, only=only)
        return await _settled(log, trace_log, found)
    finally:
        await log.close()


async def _found(log: Log, bench: Bench, since: float) -> _Found:
    """The newest revision of each trace, and what was spent today."""
    found = _Found()
    today = wall() // DAY * DAY
    for partition in range(log.partitions(TRACES)):
        async for record in log.replay(TRACES, partition):
            decoded = decode_traces(record.value)
            if isinstance(decoded, VerdictRecord) and record.time >= today:
                found.calls += decoded.calls
                found.cost_usd += decoded.cost_usd
            elif isinstance(decoded, TraceRecord) and record.time >= since:
                again = _again(decoded, bench)
                found.traces.pop(decoded.trace.trace_id, None)
                found.traces[decoded.trace.trace_id] = New(
                    topic=TRACES, key=record.key, value=encode(again)
                )
    return found


def _again(record: TraceRecord, bench: Bench) -> TraceRecord:
    job = ReadJob(
        trace_id=bytes.fromhex(record.trace.trace_id),
        pieces=record.spans,
        closed=record.trace.closed,
    )
    return msgspec.structs.replace(record, trace=bench.read(job), spans=())


async def _copied(found: _Found) -> MemoryLog:
    now = wall()
    kept: dict[str, frozenset[str]] = dict.fromkeys((TRACES, SIGNALS), frozenset({"offline"}))
    trace_log = MemoryLog(clock=lambda: now, max_size=UNLIMITED, groups=kept)
    await trace_log.write([_spend(0, found.cost_usd)])
    for each in found.traces.values():
        await trace_log.write([each])
        await asyncio.sleep(0)
    return trace_log


async def _settled(log: Log, trace_log: MemoryLog, found: _Found) -> Offline:
    scored = Offline()
    calls, cost = 0, -found.cost_usd
    async for record in trace_log.replay(TRACES, 0):
        decoded = decode_traces(record.value)
        if isinstance(decoded, VerdictRecord):
            calls += decoded.calls
            cost += decoded.cost_usd
        elif isinstance(decoded, TraceRecord):
            scored.traces.append(decoded.trace)
    scored.signals = [record.value async for record in trace_log.replay(SIGNALS, 0)]
    if calls:
        await log.write([_spend(calls, max(0.0, cost))])
    return scored


def _spend(calls: int, cost: float) -> New:
    record = VerdictRecord(
        scope="trace",
        service=NOBODY,
        session_id=NOBODY,
        subject=NOBODY,
        digest="",
        outcomes=(),
        calls=calls,
        cost_usd=cost,
    )
    return New(topic=TRACES, key=session_key(NOBODY, NOBODY), value=encode(record))
