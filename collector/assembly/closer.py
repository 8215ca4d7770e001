"""From closing to record: workers read what closed, one writer writes it, trace, mark, commit.

    reader --put--> pending --hands--> workers.read --> finished --writer--> log.write([trace, mark ...], commits)

Several hands read at once, so a slow trace holds up its own batch only. There is one writer: the commit it makes is
computed when the write is made, and no other write can pass what this one has not stored yet.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from collector.assembly.buffer import Buffer
from collector.assembly.closing import Closing
from collector.assembly.counts import Counts
from collector.assembly.finished import Finished, Revision, placed, unread, written
from collector.assembly.late import merge
from collector.assembly.marks import Remembered
from collector.config.tree import TraceWindow
from collector.errors import RecordTooLarge, Undecodable
from collector.log.port import Commit, Log, New, Position
from collector.pool.port import PackedTrace, ReadJob, Workers
from collector.records.traces import TraceRecord, decode_traces
from collector.runtime.retry import Retry
from collector.telemetry import OTHER
from evaluators.model import Trace

HANDS = 4
BATCH_TRACES = 32
BATCH_BYTES = 8 << 20
WRITE_BYTES = 1 << 20
"""Written at once: what receivers have to write meanwhile waits as long as this takes."""
IN_FLIGHT_TRACES = 1024
IN_FLIGHT_BYTES = 64 << 20


class Closer:
    """Owns every closing from the buffer's decision to the log's answer."""

    def __init__(
        self,
        *,
        log: Log,
        workers: Workers,
        windows: TraceWindow,
        counts: Counts,
        retry: Retry,
        commits: Callable[[], list[Commit]],
        committed: Callable[[Sequence[Commit]], None],
    ) -> None:
        self._log = log
        self._workers = workers
        self._windows = windows
        self._counts = counts
        self._retry = retry
        self._commits = commits
        self._committed = committed
        self._changed = asyncio.Condition()
        self._pending: deque[tuple[Buffer, Closing]] = deque()
        self._finished: list[Finished] = []
        self._in_flight = 0
        self._bytes = 0
        self._commits_asked = self._commits_made = 0
        self._done = False

    # --- the reader's side ---------------------------------------------------------------------------------------

    async def put(self, buffer: Buffer, closings: Iterable[Closing]) -> None:
        """Take closings over. Never waits for a worker: `room` does."""
        before = self._in_flight
        for closing in closings:
            self._pending.append((buffer, closing))
            self._in_flight += 1
            self._bytes += closing.size
        if self._in_flight != before:  # every tick comes by here; waking everybody is dear
            await self._notify()

    async def room(self) -> None:
        """Wait until few enough traces and bytes are on their way to read on."""
        await self._until(
            lambda: self._in_flight < IN_FLIGHT_TRACES and self._bytes < IN_FLIGHT_BYTES
        )

    async def commit(self) -> None:
        """Ask for a commit though nothing has closed."""
        self._commits_asked += 1
        await self._notify()

    async def join(self) -> None:
        """Wait until everything put is written and every commit asked for is made."""
        await self._until(lambda: not self._in_flight and not self._owes_commit)

    async def stop(self) -> None:
        """Let `run` end once everything is written."""
        await self.join()
        self._done = True
        await self._notify()

    # --- the hands -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read and write what is put, until `stop`."""
        self._done = False
        async with asyncio.TaskGroup() as group:
            for _ in range(HANDS):
                group.create_task(self._hand())
            group.create_task(self._writer())

    async def in_order(self, closings: Sequence[tuple[Buffer, Closing]]) -> None:
        """Read and write these in exactly this order, `run` having ended."""
        rest = deque(closings)
        while rest:
            batch = _batch(rest)
            await self._write(await self._read(batch))

    async def _hand(self) -> None:
        while True:
            await self._until(lambda: self._done or any(map(_is_ready, self._pending)))
            if self._done:
                return
            finished = await self._read(_batch(self._pending))
            self._finished += finished
            await self._notify()

    async def _read(self, batch: Sequence[tuple[Buffer, Closing]]) -> list[Finished]:
        """What each closing of the batch came to, in its order."""
        prepared = [await self._prepare(buffer, closing) for buffer, closing in batch]
        asked = [each for each in prepared if isinstance(each, _Asked)]
        jobs = [each.job for each in asked]
        traces = iter(
            await self._retry.workers("have traces read", lambda: self._workers.read(jobs))
            if jobs
            else ()
        )
        return [
            each.answer(next(traces)) if isinstance(each, _Asked) else each for each in prepared
        ]

    async def _prepare(self, buffer: Buffer, closing: Closing) -> _Asked | Finished:
        if not closing.late:
            return _Asked(buffer=buffer, closing=closing, pieces=closing.pieces)
        mark = buffer.revisable(closing)
        old = None if mark is None else await self._old(mark)
        if mark is None or old is None:
            return _ignored(buffer, closing)
        try:
            merged = merge(old, closing, self._windows)
        except Undecodable:
            return _ignored(buffer, closing)
        if not merged.new or not merged.fits:
            return Finished(
                buffer=buffer,
                closing=closing,
                service=old.trace.service,
                duplicates=merged.duplicates,
                ignored=merged.new,
            )
        revision = Revision(mark=mark, old=old, merged=merged)
        return _Asked(buffer=buffer, closing=closing, pieces=merged.pieces, revision=revision)

    async def _old(self, mark: Remembered) -> TraceRecord | None:
        """The record that a mark names; None when it has expired."""
        position = mark.position
        if position is None:
            return None
        record = await self._retry.log("fetch a trace", lambda: self._log.get(position))
        try:
            old = None if record is None else decode_traces(record.value)
        except Undecodable:
            return None
        return old if isinstance(old, TraceRecord) else None

    # --- the writer ----------------------------------------------------------------------------------------------

    async def _writer(self) -> None:
        while True:
            await self._until(lambda: self._done or self._owes_commit or bool(self._finished))
            if self._done:
                return
            finished = self._portion()
            asked = self._commits_asked
            await self._write(finished)
            self._commits_made = asked
            self._in_flight -= len(finished)
            self._bytes -= sum(each.closing.size for each in finished)
            await self._notify()

    def _portion(self) -> list[Finished]:
        """Take off the first of what is finished, one at least."""
        size = count = 0
        while count < len(self._finished) and size < WRITE_BYTES:
            size += self._finished[count].closing.size
            count += 1
        portion, self._finished = self._finished[:count], self._finished[count:]
        return portion

    async def _write(self, group: Sequence[Finished]) -> None:
        """Write traces, marks and commits, in that order; then forget the closings."""
        for each in group:
            each.buffer.let_go(each.closing)
        news = [new for each in group for new in each.news]
        try:
            positions = await self._append_and_commit(news)
        except RecordTooLarge:
            group, positions = await self._write_singly(group)
            await self._append_and_commit(())
        self._settle(group, positions)

    async def _write_singly(
        self, group: Sequence[Finished]
    ) -> tuple[list[Finished], list[Position]]:
        """One of the records is too large: that trace is marked closed without a record."""
        stored: list[Finished] = []
        positions: list[Position] = []
        for each in group:
            try:
                positions += await self._append(each.news)
                stored.append(each)
            except RecordTooLarge as error:
                stored.append(each.unwritable(str(error)))
                positions += await self._append(stored[-1].news)
        return stored, positions

    async def _append(self, news: Sequence[New]) -> Sequence[Position]:
        if not news:
            return ()
        return await self._retry.log("write traces", lambda: self._log.write(news))

    async def _append_and_commit(self, news: Sequence[New]) -> Sequence[Position]:
        """Every attempt commits afresh: a partition may have gone while the log could not be written to."""

        async def attempt() -> Sequence[Position]:
            commits = self._commits()
            positions = await self._log.write(news, commits) if news or commits else ()
            self._committed(commits)
            return positions

        return await self._retry.log("write traces", attempt)

    def _settle(self, group: Sequence[Finished], positions: Sequence[Position]) -> None:
        place = iter(positions)
        for each in group:
            mark = each.mark
            if mark is not None and each.record is not None:
                mark = placed(mark, next(place))
            offset = 0 if mark is None else next(place).offset
            self._log.release(each.buffer.settle(each.closing, mark, offset))
            self._counts.finished(each)

    # --- waiting -------------------------------------------------------------------------------------------------

    @property
    def _owes_commit(self) -> bool:
        return self._commits_asked > self._commits_made

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(holds)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A closing whose trace a worker reads."""

    buffer: Buffer
    closing: Closing
    pieces: tuple[bytes, ...]
    revision: Revision | None = None

    @property
    def job(self) -> ReadJob:
        return ReadJob(
            trace_id=self.closing.trace_id, pieces=self.pieces, closed=self.closing.reason
        )

    def answer(self, trace: Trace | PackedTrace | None) -> Finished:
        if trace is None:
            return unread(self.buffer, self.closing, self.revision, "no worker could read it")
        return written(self.buffer, self.closing, self.revision, trace)


def _ignored(buffer: Buffer, closing: Closing) -> Finished:
    mark = buffer.marks.get(closing.trace_id)
    service = OTHER if mark is None else mark.service
    return Finished(buffer=buffer, closing=closing, service=service, ignored=closing.spans)


def _is_ready(pending: tuple[Buffer, Closing]) -> bool:
    """A second closing of a trace waits for the first: it builds on its record."""
    buffer, closing = pending
    return buffer.is_first(closing)


def _batch(pending: deque[tuple[Buffer, Closing]]) -> list[tuple[Buffer, Closing]]:
    """Take a batch off `pending`, leaving in place what is not ready."""
    batch: list[tuple[Buffer, Closing]] = []
    waiting: list[tuple[Buffer, Closing]] = []
    size = 0
    while pending and len(batch) < BATCH_TRACES and size < BATCH_BYTES:
        each = pending.popleft()
        if not _is_ready(each):
            waiting.append(each)
            continue
        batch.append(each)
        size += each[1].size
    pending.extendleft(reversed(waiting))
    return batch
