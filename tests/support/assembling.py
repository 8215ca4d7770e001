"""Assembly over a `ListLog`, stepped by the test: no wall clock anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from collector.assembly.assembler import Assembler
from collector.config.tree import TraceWindow, Windows
from collector.log.port import CLOSINGS, SPANS, TRACES
from collector.records.closings import Mark, decode_mark
from collector.records.traces import TraceRecord, decode_traces
from collector.telemetry import Telemetry
from tests.support.list_log import Disk, ListLog
from tests.support.reading import ReadingWorkers
from tests.support.spans import Made, request

WINDOWS = Windows(
    trace=TraceWindow(
        root_grace=6, local_root_grace=30, idle=300, max_age=3600, late=600, max_revisions=3
    )
)


class Now:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@dataclass(slots=True, kw_only=True)
class Site:
    """A log, workers, and one assembler at a time over them."""

    disk: Disk = field(default_factory=Disk)
    windows: Windows = WINDOWS
    now: Now = field(default_factory=Now)
    workers: ReadingWorkers = field(default_factory=ReadingWorkers)
    telemetry: Telemetry = field(default_factory=Telemetry)
    atomic: bool = True
    max_marks: int = 1000
    slept: list[float] = field(default_factory=list[float])
    log: ListLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.reopen()

    def reopen(self, crash_at: int | None = None) -> ListLog:
        """A new life over what survived."""
        self.log = ListLog(disk=self.disk, clock=self.now, atomic=self.atomic, crash_at=crash_at)
        return self.log

    def send(self, time: float, *spans: Made, partition: int = 0) -> None:
        """A record of `spans` at a log time."""
        self.now.time = max(self.now.time, time)
        self.disk.append(SPANS, partition, b"", request(*spans), self.now.time)

    def assembler(self) -> Assembler:
        return Assembler(
            log=self.log,
            workers=self.workers,
            windows=self.windows,
            telemetry=self.telemetry,
            sleep=self._sleep,
            max_marks=self.max_marks,
        )

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Assembler]:
        """An assembler at work; stopped, and its end awaited, on leaving."""
        assembler, stopping = self.assembler(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(assembler.run(stopping))
            await self.until(lambda: bool(self.log.readers))
            yield assembler
            stopping.set()
            await task

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let the others work until the claim holds."""
        for _ in range(5000):
            if holds():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never came to hold")

    async def polled(self, times: int = 3) -> None:
        """Let the assembler poll a few times more."""
        reader = self.log.readers[-1]
        wanted = reader.polls + times
        await self.until(lambda: reader.polls >= wanted)

    async def once(self, until: float) -> None:
        """One life that reads everything, with the clock at `until`."""
        self.now.time = max(self.now.time, until)
        self.reopen()
        async with self.running():
            await self.polled(5)

    async def drained(self, reason: Literal["shutdown", "end"] = "end") -> None:
        self.reopen()
        await self.assembler().drain(reason)

    def traces(self) -> list[TraceRecord]:
        found = [decode_traces(record.value) for record in self.disk.all(TRACES)]
        return [each for each in found if isinstance(each, TraceRecord)]

    def marks(self) -> list[Mark]:
        return [decode_mark(record.value) for record in self.disk.all(CLOSINGS)]

    def count(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(f"spanwise_{name}", labels) or 0.0


def newest(traces: Sequence[TraceRecord]) -> dict[str, TraceRecord]:
    """The highest revision of each trace."""
    found: dict[str, TraceRecord] = {}
    for each in traces:
        known = found.get(each.trace.trace_id)
        if known is None or each.revision >= known.revision:
            found[each.trace.trace_id] = each
    return found
