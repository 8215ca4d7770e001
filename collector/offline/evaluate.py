"""Recordings scored without a running service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.errors import ConfigError, Undecodable
from collector.offline.recordings import requests, signal_of
from collector.records.traces import RunRecord
from collector.telemetry import Telemetry
from collector.wiring.offline_service import OfflineService
from collector.wiring.rooms import start_workers
from evaluators.model import Trace
from evaluators.plan import Plan

SMALL = 8 << 20
"""Bytes of recordings below which starting worker processes takes longer than scoring inline."""
MAX_REASONS = 5

Progress = Callable[[Path], None]
"""Called after each file."""


@dataclass(slots=True, kw_only=True)
class EvaluationResult:
    """The traces of a set of recordings, and their signals."""

    traces: list[Trace] = field(default_factory=list[Trace])
    signals: list[bytes] = field(default_factory=list[bytes])
    """The signals' JSON, in the order in which the service would have published them."""
    runs: list[RunRecord] = field(default_factory=list[RunRecord])
    """Sessions that were runs of a task."""
    rejected: int = 0
    """Spans that the receiver would have rejected."""
    reasons: list[str] = field(default_factory=list[str])
    """Why the first few were."""


async def read_recordings(
    config: Config, files: Iterable[Path], progress: Progress
) -> EvaluationResult:
    """Recordings as normalised traces; nothing is scored.

    Raises:
        ConfigError: a file cannot be read, or holds no export requests of its signal.
    """
    every, telemetry = plan_from(config), Telemetry()
    workers = start_workers(config, every, telemetry, count=0)
    service = OfflineService(config, every, workers, telemetry)
    result = EvaluationResult()
    await _take(service, files, progress, result)
    await service.assemble()
    result.traces = await service.traces()
    return result


async def evaluate_recordings(
    config: Config,
    plan: Plan,
    files: Sequence[Path],
    progress: Progress,
    *,
    only: Sequence[str] | None = None,
) -> EvaluationResult:
    """Recordings as signals; `only` is what the plan was limited to.

    Raises:
        ConfigError: a file cannot be read, or holds no export requests of its signal.
    """
    telemetry = Telemetry()
    count = config.worker_count if _size(files) >= SMALL else 0
    workers = start_workers(config, plan, telemetry, count=count)
    result = EvaluationResult()
    try:
        service = OfflineService(config, plan, workers, telemetry, only=only)
        await _take(service, files, progress, result)
        await service.assemble()
        await service.score()
    finally:
        await workers.close()
    result.traces = await service.traces()
    result.runs = await service.runs()
    result.signals = await service.signals()
    return result


async def _take(
    service: OfflineService, files: Iterable[Path], progress: Progress, result: EvaluationResult
) -> None:
    for file in files:
        signal = signal_of(file)
        if isinstance(signal, str):
            raise ConfigError(f"{file}: holds the {signal} signal, which is not read")
        for request in requests(file, signal.request):
            try:
                split = await service.take(request, signal)
            except Undecodable as error:
                raise ConfigError(f"{file}: {error}") from error
            result.rejected += split.rejected
            result.reasons += split.reasons[: MAX_REASONS - len(result.reasons)]
        progress(file)
        await asyncio.sleep(0)


def _size(files: Iterable[Path]) -> int:
    """Bytes of spans, about: what is compressed counts eight times."""
    return sum(each.stat().st_size * (8 if each.suffix == ".gz" else 1) for each in files)
