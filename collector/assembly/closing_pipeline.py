"""From closing to record: workers read the traces that closed, one writer writes trace, mark and commit.

    Assembler --put--> pending --readers--> read --writer--> log.write([trace, mark ...], commits)

Several batches are read at once, each of one service, and a service has at most its share of them: its slow traces
delay no other service's. There is one writer: it computes the commits when it writes, so no commit can pass a record
that is not stored yet, in whatever order the traces are read.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field

from collector.assembly.closing import Closing, late_revision, with_position
from collector.assembly.families import AssemblyCounts
from collector.assembly.glances import Suspect
from collector.assembly.trace_reading import TraceReading
from collector.base import watch
from collector.base.errors import RecordTooLarge, Undecodable
from collector.base.retry import Retry
from collector.config.tree import TraceWindow
from collector.log.port import Commit, Log, New, Position
from collector.reading.port import Workers

READERS = 8  # batches that are read at once
BATCH_TRACES = 32
BATCH_BYTES = 8 << 20
WRITE_BYTES = 1 << 20
"""Of traces in one write: the writes of receivers wait as long as it takes."""
IN_FLIGHT_TRACES = 1024
IN_FLIGHT_BYTES = 64 << 20
"""Of closings, as what they took while they were open, and of the normalised traces that wait to be written."""
RESULT_BYTES = 32 << 20
"""Of normalised traces that wait to be written; nothing more is read before they are."""


@dataclass(slots=True, kw_only=True)
class ClosingPipeline:
    """Owns every closing until the log has it."""

    log: Log  # read for late revisions, and written to
    workers: InitVar[Workers]
    windows: TraceWindow
    share: InitVar[float]
    """Of the batches that are read at once, what one service may have; at least one."""
    counts: AssemblyCounts  # called with each closing that is written
    retry: Retry  # how to wait for the log and the workers
    commits: Callable[[], list[Commit]]  # those to store with a write made now
    committed: Callable[[Sequence[Commit]], None]  # called with those that are stored
    reading: TraceReading = field(init=False)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _most: int = field(init=False)  # batches of one service that are read at once
    _reading: Counter[str] = field(default_factory=Counter[str])
    """Batches that are read now, by service."""
    _pending: dict[str, deque[Closing]] = field(default_factory=dict[str, deque[Closing]])
    """By service; without services that have no closing."""
    _to_write: list[Closing] = field(default_factory=list[Closing])  # in this order
    _in_flight: int = 0
    _bytes: int = 0
    _unwritten: int = 0
    _commits_asked: int = 0
    _commits_made: int = 0
    _suspects: list[Suspect] = field(default_factory=list[Suspect])
    _done: bool = False

    def __post_init__(self, workers: Workers, share: float) -> None:
        self.reading = TraceReading(self.log, workers, self.retry)
        self._most = max(1, int(READERS * share))

    async def put(self, closings: Iterable[Closing]) -> None:
        """Queue closings. Does not wait for a worker: `wait_for_capacity` does."""
        before = self._in_flight
        for closing in closings:
            self._pending.setdefault(closing.service, deque()).append(closing)
            self._in_flight += 1
            self._bytes += closing.cost
        if self._in_flight != before:  # called on every tick: notify only when something was queued
            await self._notify()

    @property
    def has_capacity(self) -> bool:
        """Whether so few traces and bytes are in flight that more records may be read."""
        return self._in_flight < IN_FLIGHT_TRACES and self._bytes < IN_FLIGHT_BYTES

    async def wait_for_capacity(self) -> None:
        await self._until(lambda: self.has_capacity)

    async def commit(self) -> None:
        self._commits_asked += 1
        await self._notify()

    async def join(self) -> None:
        await self._until(lambda: not self._in_flight and not self._owes_commit)

    async def stop(self) -> None:
        await self.join()
        self._done = True
        await self._notify()

    @property
    def is_busy(self) -> bool:
        return self._in_flight > READERS * BATCH_TRACES or self._bytes > IN_FLIGHT_BYTES // 2

    async def suspect(self, suspect: Suspect) -> None:
        """Write what was seen of an open trace, unless it closes before."""
        self._suspects.append(suspect)
        await self._notify()

    async def _write_suspects(self) -> None:
        suspects, self._suspects = self._suspects, []
        still = [each for each in suspects if each.trace.is_open]
        for each in still:
            each.trace.is_named = True
        records = [each.new for each in still]
        try:
            await self._append(records)
        except RecordTooLarge:
            self.counts.glanced("too_large")

    async def run(self) -> None:
        self._done = False
        async with asyncio.TaskGroup() as group:
            parts = [
                *(
                    group.create_task(self._reader(), name=f"closings read {number}")
                    for number in range(READERS)
                ),
                group.create_task(self._writer(), name="closings written"),
            ]
            await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            if not self._done:
                watch.raise_ended(parts)

    async def write_sequentially(self, closings: Sequence[Closing]) -> None:
        """Read and write these in exactly this order, after `run` has ended."""
        rest = deque(closings)
        while rest:
            await self._write(await self._read(_batch(rest)))

    async def _reader(self) -> None:
        while True:
            await self._until(lambda: self._done or self._next_service() is not None)
            if self._done:
                return
            service = self._next_service()
            if service is None:  # another reader took its batch
                continue
            self._reading[service] += 1
            batch = await self._read(self._batch(service))
            self._reading[service] -= 1
            self._reading += Counter()  # forgets a service without a batch
            self._to_write += batch  # after the await: the writer replaces the list meanwhile
            self._note(sum(each.read_size for each in batch))
            await self._notify()

    def _note(self, size: int) -> None:
        self._unwritten += size
        self._bytes += size

    def _next_service(self) -> str | None:
        """Of the services with a closing to read, the one with the fewest batches; None: none may have another."""
        if self._unwritten >= RESULT_BYTES:
            return None
        found, fewest = None, self._most
        for service, closings in self._pending.items():
            batches = self._reading[service]
            if batches < fewest and any(map(_is_ready, closings)):
                found, fewest = service, batches
            if not fewest:  # of thousands of services, the first will do
                break
        return found

    def _batch(self, service: str) -> list[Closing]:
        batch = _batch(self._pending[service])
        if not self._pending[service]:
            del self._pending[service]
        return batch

    async def _read(self, batch: Sequence[Closing]) -> Sequence[Closing]:
        """The same closings, each with its trace, where it has one."""
        read = [each for each in batch if await self.prepare(each)]
        traces = await self.reading.traces([each.job for each in read])
        for closing, closing.trace in zip(read, traces, strict=True):
            if closing.trace is None:
                closing.cannot_be("no worker could read it")
        return batch

    async def prepare(self, closing: Closing) -> bool:
        """Join late spans with the record of their trace; returns whether there is anything to read."""
        if not closing.late:
            return True
        mark = closing.closings.revisable_mark(closing)
        old = None if mark is None else await self.reading.newest_record(mark)
        kept = () if old is None else await self.reading.whole(old.spans)
        if mark is None or old is None or not kept:  # without its spans a record cannot be revised
            return False
        late = await self.reading.each(closing.pieces)
        try:
            closing.revision = late_revision(
                mark, old, closing, self.windows, raw_old=kept, raw_late=late
            )
        except Undecodable:
            return False
        return closing.is_written

    async def _writer(self) -> None:
        while True:
            await self._until(
                lambda: self._done or self._owes_commit or bool(self._to_write or self._suspects)
            )
            if self._done:
                return
            await self._write_suspects()
            if not (self._to_write or self._owes_commit):
                continue
            batch = self._next_write()
            sizes = sum(each.read_size for each in batch)  # before a trace is cut
            commits_asked = self._commits_asked
            await self._write(batch)
            self._commits_made = commits_asked
            self._in_flight -= len(batch)
            self._bytes -= sum(each.cost for each in batch)
            self._note(-sizes)
            await self._notify()

    def _next_write(self) -> list[Closing]:
        """Take the first that are read, at least one if there is one, up to WRITE_BYTES."""
        size = count = 0
        while count < len(self._to_write) and size < WRITE_BYTES:
            size += self._to_write[count].written_size
            count += 1
        batch, self._to_write = self._to_write[:count], self._to_write[count:]
        return batch

    async def _write(self, batch: Sequence[Closing]) -> None:
        """Write traces, marks and commits, in that order; then the closings are complete."""
        for each in batch:
            each.closings.release_hold(each)
        records = [record for each in batch for record in each.records]
        try:
            positions = await self._append_and_commit(records)
        except RecordTooLarge:
            positions = [position for each in batch for position in await self._write_one(each)]
            await self._append_and_commit(())
        self._complete(batch, positions)

    async def _write_one(self, closing: Closing) -> Sequence[Position]:
        """One of several records is too large: where it is this one, its trace is cut, without its raw spans.

        A trace that is too large even so is marked closed without a record.
        """
        try:
            return await self._append(closing.records)
        except RecordTooLarge:
            await asyncio.to_thread(closing.cut)
        try:
            return await self._append(closing.records)
        except RecordTooLarge as error:
            closing.cannot_be(str(error))
            return await self._append(closing.records)

    async def _append(self, records: Sequence[New]) -> Sequence[Position]:
        if not records:
            return ()
        return await self.retry.log("write traces", lambda: self.log.write(records))

    async def _append_and_commit(self, records: Sequence[New]) -> Sequence[Position]:
        """Each attempt computes the commits again: a partition may be revoked while the log cannot be written to."""

        async def attempt() -> Sequence[Position]:
            commits = self.commits()
            positions = await self.log.write(records, commits) if records or commits else ()
            self.committed(commits)
            return positions

        return await self.retry.log("write traces", attempt)

    def _complete(self, batch: Sequence[Closing], positions: Sequence[Position]) -> None:
        remaining = iter(positions)
        for each in batch:
            mark = each.mark if each.is_written else None
            if mark is not None and each.trace is not None:
                mark = with_position(mark, next(remaining))
            offset = 0 if mark is None else next(remaining).offset
            self.log.release(each.closings.complete(each, mark, offset))
            self.counts.closed(each)

    @property
    def _owes_commit(self) -> bool:
        return self._commits_asked > self._commits_made

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _is_ready(closing: Closing) -> bool:
    return closing.closings.is_first(closing)


def _batch(pending: deque[Closing]) -> list[Closing]:
    """Take a batch off `pending`; closings that are not ready stay, in their order."""
    batch: list[Closing] = []
    waiting: list[Closing] = []
    size = 0
    while pending and len(batch) < BATCH_TRACES and size < BATCH_BYTES:
        each = pending.popleft()
        if not _is_ready(each):
            waiting.append(each)
            continue
        batch.append(each)
        size += each.size
    pending.extendleft(reversed(waiting))
    return batch
