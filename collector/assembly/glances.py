"""Looking at traces that are still open: a loop is the trace that does not close.

    OpenTraces --put--> waiting --one at a time--> a worker reads the trace as it stands --> the pipeline's writer

A trace is due when it is `windows.trace.glance` old and then at every doubling of its age, in log time, if spans came
since: all glances together read at most twice what reading the closed trace does. Where a look at the whole would read
more, only what came since is read, and the whole if so many calls of one kind came that it may have become a loop.
Glances give way: few may wait, the trace with the most new model calls first, one is made at once, and none while many
closings are on their way. One that is passed over is counted; the next comes when the trace is twice as old, and after
three in a row it is made, whatever else waits.
"""

import asyncio
import math
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from collector.assembly.closing import Closing
from collector.assembly.families import AssemblyCounts
from collector.assembly.open_trace import Glance, OpenTrace
from collector.assembly.open_traces import OpenTraces
from collector.base.errors import Retryable
from collector.log.port import TRACES, New
from collector.reading.port import GlanceJob, Workers
from collector.records.codec import encode
from collector.records.sessions import session_key
from collector.records.span_refs import Piece
from collector.records.traces import RunawayRecord
from evaluators.model import Trace

WAITING = 64
"""Traces that may wait, besides those that were passed over too often. What they hold stays with the open trace."""
_MUST_BE_SEEN = (True, -math.inf, 0, b"")  # before all of these, behind all others


class _DueGlance(NamedTuple):
    place: tuple[bool, float, int, bytes]
    """In the order: last those that must be looked at, before them the most urgent; of two alike the older one."""
    glance: Glance


class GlanceQueue:
    """Open traces that are due to be looked at, each once."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, _DueGlance] = {}
        """By trace id: the newest glance of a trace replaces the one that waits."""
        self._order: list[tuple[bool, float, int, bytes]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, glance: Glance) -> Glance | None:
        trace = glance.trace
        before = self._taken(trace.trace_id)
        glance = glance.joined(before and before.glance)
        place = (trace.must_be_seen, glance.urgency, -trace.hold.number, trace.trace_id)
        self._waiting[trace.trace_id] = _DueGlance(place, glance)
        insort(self._order, place)
        if bisect_left(self._order, _MUST_BE_SEEN) <= WAITING:
            return None
        least = self._taken(self._order[0][-1])
        return least and least.glance

    def pop(self) -> Glance:
        _, _, _, trace_id = self._order.pop()
        return self._waiting.pop(trace_id).glance

    def _taken(self, trace_id: bytes) -> _DueGlance | None:
        waiting = self._waiting.pop(trace_id, None)
        if waiting is not None:
            del self._order[bisect_left(self._order, waiting.place)]
        return waiting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Suspect:
    """An open trace that may run away."""

    trace: OpenTrace
    record: RunawayRecord

    @property
    def new(self) -> New:
        subject = self.record.subject
        key = session_key(subject.service, subject.session_id)
        return New(topic=TRACES, key=key, value=encode(self.record))


@dataclass(slots=True, kw_only=True)
class Glances:
    """What waits to be looked at, and the loop that does it."""

    workers: Workers
    counts: AssemblyCounts  # called with what became of each
    prepare: Callable[[Closing], Awaitable[bool]]
    """Joins late spans with the record of the trace that they belong to; returns whether there is anything to read."""
    with_bytes: Callable[[Sequence[Piece]], Awaitable[tuple[bytes, ...]]]
    """Fetches spans that the traces do not hold themselves."""
    is_busy: Callable[[], bool]  # whether so many closings are on their way that none is made
    found: Callable[[Suspect], Awaitable[None]]  # called with each trace that may run away
    _waiting: GlanceQueue = field(default_factory=GlanceQueue)
    _has_some: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, open_traces: OpenTraces) -> None:
        for glance in open_traces.take_glances():
            least = self._waiting.put(glance)
            if least is not None:
                self.counts.glanced(_passed_over(least))
            self._has_some.set()

    async def run(self) -> None:
        """Look at one trace after the other, until it is cancelled."""
        while True:
            await self._has_some.wait()
            if self._waiting:
                self.counts.glanced(await self._look(self._waiting.pop()))
            else:
                self._has_some.clear()

    async def _look(self, glance: Glance) -> str:
        if not glance.trace.is_open:
            return "closed"
        if self.is_busy() and not glance.trace.must_be_seen:
            return _passed_over(glance)
        try:
            if glance.first and not await self._may_loop(glance):
                return "nothing"
            return await self._look_at_whole(glance.whole)
        except Retryable:  # it ended a worker, or the service stops: its closing will tell
            glance.trace.stop_glances()
            return "failed"

    async def _may_loop(self, glance: Glance) -> bool:
        seen = await self.workers.glance(await self._job(glance.closing, is_part=True))
        glance.trace.was_seen(glance, seen.call_share)
        return glance.trace.came(seen.calls)

    async def _look_at_whole(self, glance: Glance) -> str:
        whole = glance.closing
        if not await self.prepare(whole):
            return "closed"
        seen = await self.workers.glance(await self._job(whole))
        glance.trace.was_seen(glance, seen.call_share)
        glance.trace.repeats_missing = seen.repeats_missing
        record = seen.record
        if record is None:
            return "nothing"
        if whole.revision is not None:
            record = _in_its_session(record, whole.revision.old.trace)
        await self.found(Suspect(trace=glance.trace, record=record))
        return "suspect"

    async def _job(self, closing: Closing, *, is_part: bool = False) -> GlanceJob:
        job = closing.job
        return GlanceJob(
            trace_id=job.trace_id,
            pieces=await self.with_bytes(job.pieces),
            service=job.service,
            is_part=is_part,
            seen=closing.seen,
            revision=closing.number,
        )


def _passed_over(glance: Glance) -> str:
    glance.trace.passed_over(glance)
    return "busy"


def _in_its_session(record: RunawayRecord, old: Trace) -> RunawayRecord:
    """A trace that late spans opened again stays in the session where it first closed."""
    subject = replace(
        record.subject,
        service=old.service,
        session_id=old.session_id,
        session_source=old.session_source,
    )
    return replace(record, subject=subject)
