"""Assembly over a `FaultyLog`, stepped by the test: no wall clock anywhere."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from collector.assembly.assembler import Assembler
from collector.base.telemetry import Telemetry
from collector.config.tree import TraceWindow, Windows
from collector.log.port import CLOSINGS, SPANS, TRACES
from collector.otlp.scan import scan
from collector.otlp.split import SplitRequest
from collector.reading.worker import only_bytes
from collector.records.closings import Mark, decode_mark
from collector.records.span_refs import SpanRef
from collector.records.traces import TraceRecord, decode_traces
from tests.support.clocks import SetClock
from tests.support.faulty_log import Crash, FaultyLog
from tests.support.keeping_log import KeepingLog
from tests.support.reading import ReadingWorkers
from tests.support.spans import Made, request

WINDOWS = Windows(
    trace=TraceWindow(
        root_grace=6, local_root_grace=30, idle=300, max_age=3600, late=600, max_revisions=3
    )
)
GROUPS = {SPANS: frozenset({"assembly"}), CLOSINGS: frozenset({"assembly"})}


@dataclass(slots=True, kw_only=True)
class Site:
    """A log, workers, and one assembler at a time over them."""

    partitions: int = 1
    windows: Windows = WINDOWS
    clock: SetClock = field(default_factory=lambda: SetClock(100.0))
    workers: ReadingWorkers = field(default_factory=ReadingWorkers)
    telemetry: Telemetry = field(default_factory=Telemetry)
    atomic: bool = True
    share: float = 0.5
    max_marks: int = 1000
    by_ref: bool = False
    """Whether the log reads parts of records and keeps spans, as that on disk."""
    slept: list[float] = field(default_factory=list[float])
    log: FaultyLog = field(init=False)

    def __post_init__(self) -> None:
        if self.by_ref:
            self.log = KeepingLog(clock=self.clock, partitions=self.partitions, groups=GROUPS)
            return
        self.log = FaultyLog(
            clock=self.clock, partitions=self.partitions, atomic=self.atomic, groups=GROUPS
        )

    def send(self, time: float, *spans: Made, partition: int = 0) -> None:
        """A record of `spans` at a log time."""
        self.clock.now = max(self.clock.now, time)
        self.log.append(SPANS, request(*spans), partition=partition)

    def receive(self, split: SplitRequest) -> None:
        """What a receiver writes of a request of an agent that speaks in logs."""
        for piece in split.pieces:
            self.log.append(SPANS, piece.value)

    def assembler(self) -> Assembler:
        return Assembler(
            log=self.log,
            workers=self.workers,
            windows=self.windows,
            telemetry=self.telemetry,
            share=self.share,
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
        self.clock.now = max(self.clock.now, until)
        await self.live(polls=5)

    async def live(self, crash_at: int | None = None, *, polls: int = 6) -> None:
        """One life, which ends at that step of its log or after so many polls."""
        self.log.restart(crash_at=crash_at)
        try:
            async with self.running():
                await self.polled(polls)
        except* Crash:
            pass

    async def drained(self, reason: Literal["shutdown", "end"] = "end") -> None:
        self.log.restart()
        await self.assembler().drain(reason)

    def traces(self) -> list[TraceRecord]:
        found = [decode_traces(record.value) for record in self.log.history(TRACES)]
        return [each for each in found if isinstance(each, TraceRecord)]

    def with_spans(self, record: TraceRecord) -> TraceRecord:
        """The record with the bytes of the spans that it names."""
        values = {each.position: each.value for each in self.log.history(SPANS)}
        spans = (
            values[each.position][each.start : each.end] if isinstance(each, SpanRef) else each
            for each in record.spans
        )
        return replace(record, spans=tuple(spans))

    def spans_by_trace(self) -> dict[bytes, set[bytes]]:
        """Span ids by trace id, in the newest record of each."""
        found: dict[bytes, set[bytes]] = {}
        for trace_id, record in newest(self.traces()).items():
            for piece in only_bytes(self.with_spans(record).spans) or ():
                ids = {head.span_id for spans in scan(piece).traces.values() for head in spans}
                found.setdefault(bytes.fromhex(trace_id), set()).update(ids)
        return found

    def marks(self) -> list[Mark]:
        return [decode_mark(record.value) for record in self.log.history(CLOSINGS)]

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
