"""Assembly: spans of `spans` become traces of `traces`.

`Assembler` reads, waits and wires; `OpenTraces` decides; `ClosingPipeline` writes what closed.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Literal

from collector.assembly.closed_traces import ClosedTraces
from collector.assembly.closing import Closing
from collector.assembly.closing_pipeline import ClosingPipeline
from collector.assembly.families import AssemblyCounts
from collector.assembly.glances import Glances
from collector.assembly.open_traces import OpenTraces
from collector.assembly.scan import first_start
from collector.assembly.service_queues import Shares
from collector.assembly.trace_table import TakeResult
from collector.base import watch
from collector.base.errors import LogUnavailable, Retryable, Undecodable
from collector.base.retry import Retry, Sleep
from collector.base.telemetry import Telemetry
from collector.base.time_slice import in_steps
from collector.config.tree import Windows
from collector.log.consumer import Consumer
from collector.log.port import (
    CLOSINGS,
    SPANS,
    Assigned,
    Batch,
    Commit,
    Lag,
    Log,
    Record,
)
from collector.reading.port import Workers
from collector.records.closings import decode_mark

# The buffer of open traces, in all partitions of one process: whose trace closes when `windows.memory` is used up.
#
# While others wait, a service may take its share of the buffer (`fairness.share`): the oldest trace of whoever is above
# it closes first, of several that of the largest. Where none is above it, the oldest of all does.


class Buffer:
    """The open traces of all partitions that the process owns, bounded in bytes together."""

    def __init__(self, owned: Mapping[int, OpenTraces], *, limit: int, share: float) -> None:
        """`limit` in bytes; `share`, 0 to 1, is what of it one service may take while others wait."""
        self._owned = owned
        self._limit = limit
        self.shares = Shares(limit * share)

    def relieve(self) -> Iterator[Closing]:
        while self.shares.size > self._limit:
            service = self.shares.greediest
            _, partition, trace = min(
                (oldest.first_time, partition, oldest)
                for partition, each in self._owned.items()
                if (oldest := each.oldest(service)) is not None
            )
            yield self._owned[partition].close(trace, "memory")


MAX_MARKS = 200_000
"""Closed traces remembered in all partitions together, about 0.3 KB each: 58 MB at most."""
COMMIT_EVERY = 1000  # offsets that a low-water may run ahead of its commit while nothing closes
POLL = 0.25  # seconds that a poll waits: how late an idle tick may be
YIELD_EVERY = 8
"""Records taken before the event loop runs other tasks: senders wait for their acknowledgements.

A number and no time: how records of the same moment are batched, and so their order, depends on it.
"""
LAST_ATTEMPTS = 5  # at the log, once the service is stopping

_log = logging.getLogger(__name__)


class Assembler(Consumer):
    """One member of the group that reads `spans`. Call `run`, then perhaps `drain`; never two at once."""

    def __init__(
        self,
        *,
        log: Log,
        workers: Workers,
        windows: Windows,
        telemetry: Telemetry,
        share: float,
        group: str = "assembly",
        sleep: Sleep = asyncio.sleep,
        max_marks: int = MAX_MARKS,
    ) -> None:
        super().__init__(
            log=log,
            group=group,
            topic=SPANS,
            retry=Retry("Assembly", sleep, last_attempts=LAST_ATTEMPTS),
            telemetry=telemetry,
            timeout=POLL,
        )
        self._windows = windows
        self._by_ref = log.reads_parts
        """Whether open traces hold the places of their spans in the log, instead of the spans."""
        self._share = share
        self._max_marks = max_marks
        self._counts = AssemblyCounts(telemetry, self._poison, limit=windows.memory)
        self._owned: dict[int, OpenTraces] = {}
        self._buffer = Buffer(self._owned, limit=windows.memory, share=share)
        self._revoked: dict[int, OpenTraces] = {}
        """Used again if the partition comes back with the commit that it left with."""
        self._by_clock = True  # whether traces become due at the end of a partition, where no record moves log time
        self._workers = workers
        self._pipeline = self._new_pipeline()
        self._glances = self._new_glances()

    def _new_glances(self) -> Glances:
        return Glances(
            workers=self._workers,
            counts=self._counts,
            prepare=self._pipeline.prepare,
            with_bytes=self._pipeline.reading.known,
            is_busy=lambda: self._pipeline.is_busy,
            found=self._pipeline.suspect,
        )

    def _new_pipeline(self) -> ClosingPipeline:
        return ClosingPipeline(
            log=self._log_port,
            workers=self._workers,
            windows=self._windows.trace,
            share=self._share,
            counts=self._counts,
            retry=self._retry,
            commits=self._commits,
            committed=self._committed,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Assemble until `stopping` is set; then finish what is in flight, commit, return. Closes no open trace.

        Errors of the log and of the workers are waited out; once stopping, only for a few attempts.
        """
        self._retry.stopping = stopping
        self._by_clock = True
        await self._read(lambda: self._read_until(stopping), None)

    async def drain(self, reason: Literal["shutdown", "end"]) -> None:
        """Read to the end of `spans`, then close every open trace; traces in the order of (first start, trace id).

        A trace with a root closes as root_ended; others as shutdown, or with "end" as idle. With "end" the clock closes
        nothing: only the log time of records does. Raises LogUnavailable: not every trace could be written; the others
        wait in the log.
        """
        self._retry.stopping = None
        self._by_clock = reason != "end"
        if not await self._read(self._read_to_end, reason):
            raise LogUnavailable("assembly could not write every trace")
        _log.info("Assembly has closed every open trace: %s", reason)

    async def _read(
        self,
        loop: Callable[[], Coroutine[None, None, None]],
        reason: Literal["shutdown", "end"] | None,
    ) -> bool:
        """Run the loop, as a member of the group; returns False if something could not be written."""
        self._pipeline = self._new_pipeline()
        self._glances = self._new_glances()
        is_written = True
        try:
            async with self._joined():
                async with asyncio.TaskGroup() as group:
                    closings = group.create_task(self._pipeline.run(), name="closings")
                    glances = group.create_task(self._glances.run(), name="glances")
                    watching = group.create_task(watch.ends((closings, glances)))
                    await loop()
                    watching.cancel()
                    glances.cancel()  # what it had to look at is due again after the next start
                    await self.finish()
                if reason is not None:
                    await self._close_all(reason)
        except* Retryable as errors:
            is_written = False
            self._log_unwritten(errors)
        finally:
            for partition in tuple(self._owned):
                self._leave(partition)
            self._counts.open(())
        if not is_written:
            self._revoked.clear()
        return is_written

    def unwritten(self) -> Lag:
        """The records of traces that have closed and are not written yet, as old as the first of these closings.

        Those of open traces do not count as lag: they wait for their siblings, as the commit does.
        """
        closings = [each for owned in self._owned.values() for each in owned.closings]
        oldest = min((each.closed_at for each in closings), default=None)
        return Lag(sum(len(each.offsets) for each in closings), oldest)

    async def wait_for_capacity(self) -> None:
        await self._pipeline.wait_for_capacity()

    async def revoke(self, partition: int) -> None:
        if partition in self._owned:
            self._leave(partition)

    def _leave(self, partition: int) -> None:
        open_traces = self._revoked[partition] = self._owned.pop(partition)
        open_traces.leave()

    def _own(self, open_traces: OpenTraces) -> None:
        open_traces.join(self._buffer.shares)
        self._owned[open_traces.closings.partition] = open_traces

    async def assign(self, assigned: Assigned) -> None:
        """Go on with the open traces of before, or with none: the marks are read before the first span."""
        before = self._revoked.pop(assigned.partition, None)
        if before is not None and before.committed[0] == assigned.offset:
            self._own(before)
            return
        closed = await self._retry.log("read marks", lambda: self._closed_traces(assigned))
        self._own(
            OpenTraces(
                assigned.partition,
                self._windows.trace,
                closed,
                start=assigned.offset,
                by_ref=self._by_ref,
            )
        )

    async def take(self, batch: Batch) -> None:
        if batch.assigned:
            self._revoked.clear()
        for number, record in enumerate(batch.records, start=1):
            if not self._pipeline.has_capacity:  # one record may close thousands of traces
                await self._pipeline.wait_for_capacity()
            await self._take(record)
            if number % YIELD_EVERY == 0:
                await asyncio.sleep(0)
        for partition, now in batch.ends.items():
            if self._by_clock and partition in self._owned:
                open_traces = self._owned[partition]
                due = await in_steps(open_traces.ticking(now))
                self._counts.moved(due)
                await self._follow(due)
                self._glances.put(open_traces)
        await self._bound_marks()
        self._counts.open(self._owned.values())

    async def commit(self) -> None:
        """The pipeline commits with each write; ask for a commit where a low-water moved and nothing is written."""
        if any(map(self._should_commit, self._owned.items())):
            await self._pipeline.commit()

    @property
    def is_at_rest(self) -> bool:
        """No trace is open, on its way to the log, or not committed."""
        return not any(
            owned[1].open or not owned[1].is_idle or self._should_commit(owned)
            for owned in self._owned.items()
        )

    async def finish(self) -> None:
        await self._pipeline.commit()
        await self._pipeline.stop()

    async def _take(self, record: Record) -> None:
        open_traces = self._owned.get(record.position.partition)
        if open_traces is None:
            return
        result = await in_steps(open_traces.taking(record))
        self._counts.taken(record.position, result)
        if not result.needed:
            self._log_port.release([record.position])
        await self._follow(result)
        self._glances.put(open_traces)
        for closing in self._buffer.relieve():
            await self._pipeline.put([closing])

    async def _follow(self, result: TakeResult) -> None:
        """What closed is written; what nothing needs any more is given back to the log."""
        if result.freed:
            self._log_port.release(result.freed)
        if result.closings:
            await self._pipeline.put(result.closings)

    async def _bound_marks(self) -> None:
        """Forget the oldest marks; where re-reads still need them, close the trace that holds the low-water."""
        while sum(len(each.closings.written) for each in self._owned.values()) > self._max_marks:
            open_traces = max(self._owned.values(), key=lambda each: len(each.closings.written))
            if open_traces.evict():
                self._counts.evicted()
                continue
            if open_traces.is_idle and (trace := open_traces.oldest()) is not None:
                await self._pipeline.put([open_traces.close(trace, "memory")])
            return

    async def _closed_traces(self, assigned: Assigned) -> ClosedTraces:
        closed = ClosedTraces(assigned.metadata)
        replay = self._log_port.replay(CLOSINGS, assigned.partition, assigned.metadata)
        async for record in replay:
            try:
                closed.add(decode_mark(record.value), record.position.offset)
            except Undecodable as error:
                self._poison.unprocessable(record.position, error)
        return closed

    def _commits(self) -> list[Commit]:
        commits = (each.commit(self._group) for each in self._owned.values())
        return [commit for commit in commits if commit is not None]

    def _committed(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            if commit.partition in self._owned:
                self._owned[commit.partition].committed = (commit.offset, commit.metadata)

    def _should_commit(self, owned: tuple[int, OpenTraces]) -> bool:
        partition, open_traces = owned
        low_water, committed = open_traces.low_water, open_traces.committed[0]
        if low_water is None or low_water == committed:
            return False
        is_quiet = partition in self._at_end and open_traces.is_idle
        return is_quiet or low_water - (committed or 0) >= COMMIT_EVERY

    async def _close_all(self, reason: Literal["shutdown", "end"]) -> None:
        rootless = "shutdown" if reason == "shutdown" else "idle"
        closings: list[Closing] = []
        for open_traces in self._owned.values():
            moved = open_traces.straighten()
            self._counts.moved(moved)
            self._log_port.release(moved.freed)
            closings += (*moved.closings, *open_traces.drain(rootless=rootless))
        ordered = [(await self._order(closing), closing) for closing in closings]
        ordered.sort(key=lambda each: each[0])
        await self._pipeline.write_sequentially([closing for _, closing in ordered])

    async def _order(self, closing: Closing) -> tuple[int, bytes]:
        pieces = await self._pipeline.reading.known(closing.pieces)
        return first_start(pieces), closing.trace_id
