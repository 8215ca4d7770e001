"""Recordings scored without a service: the same rooms over a log in memory whose clock stands still.

All records have one log time; at the end every trace closes, then every session. The same spans give the same signal
ids as the running service, because nothing but the spans goes into an id.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collector.clock import wall
from collector.config.tree import Config
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, SPANS, TRACES, Log, New
from collector.offline import recordings
from collector.otlp.split import SplitRequest, split_by_trace
from collector.pool.inline import InlineWorkers
from collector.pool.jobs import Bench
from collector.pool.port import Workers
from collector.pool.processes import ProcessWorkers
from collector.records.traces import RunRecord, TraceRecord, decode_traces
from collector.telemetry import Telemetry
from collector.wiring.rooms import assembler, judge_room, scorer
from evaluators.model import Trace
from evaluators.run import Plan

UNLIMITED = 1 << 60
SMALL = 8 << 20
"""Bytes of recordings below which starting worker processes takes longer than scoring inline."""


@dataclass(slots=True, kw_only=True)
class Offline:
    """What came of a set of recordings."""

    signals: list[bytes] = field(default_factory=list[bytes])
    """The signals' JSON, in the order in which the service would have published them."""
    traces: list[Trace] = field(default_factory=list[Trace])
    rejected: int = 0
    """Spans that the receiver would have rejected."""
    runs: list[RunRecord] = field(default_factory=list[RunRecord])
    """Sessions that were runs of a task."""
    reasons: list[str] = field(default_factory=list[str])


async def assemble(
    config: Config, files: Iterable[Path], progress: Callable[[Path], None]
) -> Offline:
    """Recordings as normalised traces; nothing is scored."""
    workers = InlineWorkers(Bench.of(config))
    trace_log, found = await _filled(config, files, progress)
    await assembler(config, trace_log, workers, Telemetry()).drain("end")
    found.traces = await _traces(trace_log)
    return found


async def evaluate(
    config: Config,
    plan: Plan,
    files: Iterable[Path],
    progress: Callable[[Path], None],
    *,
    only: Sequence[str] | None = None,
) -> Offline:
    """Recordings as signals. `progress` is called after each file; `only` is what the plan was limited to."""
    telemetry = Telemetry()
    files = list(files)
    workers = _workers(config, plan, files, telemetry)
    try:
        trace_log, found = await _filled(config, files, progress)
        await assembler(config, trace_log, workers, telemetry).drain("end")
        await score(config, plan, trace_log, workers, telemetry, only=only)
    finally:
        await workers.close()
    found.traces = await _traces(trace_log)
    found.runs = [each async for each in _runs(trace_log)]
    found.signals = [record.value async for record in trace_log.replay(SIGNALS, 0)]
    return found


async def score(
    config: Config,
    plan: Plan,
    trace_log: Log,
    workers: Workers,
    telemetry: Telemetry,
    *,
    only: Sequence[str] | None = None,
) -> None:
    """Every trace of the log to final signals: what is judged of traces, the sessions, what is judged of them.

    Verdicts are written before the desks look, so that a session closes with them.
    """
    scorers = scorer(config, plan, trace_log, workers, telemetry)
    if not plan.judged:
        await scorers.drain("idle")
        return
    emitted = None if only is None else tuple(only)
    # The budget's clock is the wall's; the log's stands still, so that no verdict comes too late.
    now = wall()
    judging = judge_room(
        config, plan, trace_log, telemetry, wall, log_clock=lambda: now, only=emitted
    )
    async with judging.standing():
        await judging.drain()
        await scorers.drain("idle")
        if any(each.spec.scope == "session" for each in plan.judged):
            await judging.drain()
            await scorers.drain("idle")


def _workers(config: Config, plan: Plan, files: list[Path], telemetry: Telemetry) -> Workers:
    size = sum(each.stat().st_size * (8 if each.suffix == ".gz" else 1) for each in files)
    if config.workers == 0 or size < SMALL:
        return InlineWorkers(Bench.of(config, plan))
    workers = ProcessWorkers(config, plan, count=config.worker_count, telemetry=telemetry)
    workers.start()
    return workers


async def _filled(
    config: Config, files: Iterable[Path], progress: Callable[[Path], None]
) -> tuple[MemoryLog, Offline]:
    now = wall()
    kept: dict[str, frozenset[str]] = dict.fromkeys((TRACES, SIGNALS), frozenset({"offline"}))
    trace_log = MemoryLog(
        clock=lambda: now,
        max_size=UNLIMITED,
        groups={SPANS: frozenset({"assembly"}), **kept},
    )
    found = Offline()
    for file in files:
        for request in recordings.requests(file):
            pieces = split_by_trace(request, max_item=config.windows.trace.max_bytes)
            _note(found, pieces)
            await trace_log.write(
                [New(topic=SPANS, key=each.key, value=each.value) for each in pieces.pieces]
            )
        progress(file)
        await asyncio.sleep(0)
    return trace_log, found


def _note(found: Offline, pieces: SplitRequest) -> None:
    found.rejected += pieces.rejected
    found.reasons += pieces.reasons[: 5 - len(found.reasons)]


async def _runs(trace_log: MemoryLog) -> AsyncIterator[RunRecord]:
    async for record in trace_log.replay(TRACES, 0):
        decoded = decode_traces(record.value)
        if isinstance(decoded, RunRecord):
            yield decoded


async def _traces(trace_log: MemoryLog) -> list[Trace]:
    newest: dict[str, Trace] = {}
    async for record in trace_log.replay(TRACES, 0):
        decoded = decode_traces(record.value)
        if isinstance(decoded, TraceRecord):
            newest[decoded.trace.trace_id] = decoded.trace
    return list(newest.values())
