"""Assembly: spans of `spans` become traces of `traces`. The shell: it reads, waits and wires; the buffer decides."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal

from collector.assembly.buffer import Buffer
from collector.assembly.closer import Closer
from collector.assembly.closing import Closing
from collector.assembly.counts import Counts
from collector.assembly.marks import Marks
from collector.assembly.scan import first_start
from collector.config.tree import Windows
from collector.errors import LogUnavailable, Retryable, Undecodable
from collector.log.port import CLOSINGS, SPANS, Assigned, Batch, Commit, Log, Reader, Record
from collector.pool.port import Workers
from collector.records.closings import decode_mark
from collector.runtime.retry import Retry, Sleep
from collector.telemetry import Telemetry

MAX_MARKS = 200_000
"""Closed traces remembered in all partitions together, about 0.4 KB each."""
COMMIT_EVERY = 1000
"""Offsets that a low-water may run ahead of its commit while nothing closes."""
POLL = 0.25
"""Seconds that a poll waits: how late an idle tick may be."""
TURN = 32
"""Records taken before the event loop has a turn: senders wait for their acknowledgements."""
LAST_ATTEMPTS = 5
"""At the log, once the service is stopping."""
EMPTY_POLLS = 120
"""Polls without any partition after which a drain gives up: they are somebody else's."""

_log = logging.getLogger(__name__)


class Assembler:
    """One member of the group that reads `spans`. Call `run`, then perhaps `drain`; never two at once."""

    def __init__(
        self,
        *,
        log: Log,
        workers: Workers,
        windows: Windows,
        telemetry: Telemetry,
        group: str = "assembly",
        sleep: Sleep = asyncio.sleep,
        max_marks: int = MAX_MARKS,
    ) -> None:
        self._log = log
        self._windows = windows
        self._group = group
        self._max_marks = max_marks
        self._counts = Counts(telemetry, limit=windows.memory)
        self._retry = Retry("Assembly", sleep, last_attempts=LAST_ATTEMPTS)
        self._owned: dict[int, Buffer] = {}
        self._kept: dict[int, Buffer] = {}
        """Revoked, and taken up again if the partition comes back at the same position."""
        self._workers = workers
        self._closer = self._new_closer()

    def _new_closer(self) -> Closer:
        return Closer(
            log=self._log,
            workers=self._workers,
            windows=self._windows.trace,
            counts=self._counts,
            retry=self._retry,
            commits=self._commits,
            committed=self._committed,
        )

    async def run(self, stopping: asyncio.Event) -> None:
        """Assemble until `stopping` is set; then finish what is in flight, commit, return. Closes nothing open.

        Errors of the log and of the workers are waited out; once stopping, only for a few attempts.
        """
        self._retry.stopping = stopping
        await self._reading(stopping, None)

    async def drain(self, reason: Literal["shutdown", "end"]) -> None:
        """Read to the end of `spans`, then close every open trace; traces in the order of (first start, trace id).

        A trace whose root is there says root_ended; others say shutdown, or with "end" idle. With "end" the clock
        closes nothing: only log time that stands in the records does.

        Raises:
            LogUnavailable: not everything could be written; what was not waits in the log.
        """
        self._retry.stopping = None
        if not await self._reading(None, reason):
            raise LogUnavailable("assembly could not write every trace")
        _log.info("Assembly has closed every open trace: %s", reason)

    # --- reading -------------------------------------------------------------------------------------------------

    async def _reading(
        self, stopping: asyncio.Event | None, reason: Literal["shutdown", "end"] | None
    ) -> bool:
        """One life of a reader; says whether everything it began is written."""
        reader = self._log.read(self._group, SPANS)
        self._closer = self._new_closer()
        whole = True
        try:
            await self._read_and_close(reader, stopping, reason)
        except* Retryable as errors:
            whole = False
            _log.warning(
                "Assembly stops; what is unwritten waits in the log: %r", errors.exceptions
            )
        finally:
            await reader.close()
            self._revoke(tuple(self._owned))
            self._counts.held(())
        if not whole:
            self._kept.clear()
        return whole

    async def _read_and_close(
        self,
        reader: Reader,
        stopping: asyncio.Event | None,
        reason: Literal["shutdown", "end"] | None,
    ) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._closer.run())
            if stopping is not None:
                await self._read_until(reader, stopping)
            else:
                await self._read_to_end(reader, by_clock=reason != "end")
            await self._closer.commit()
            await self._closer.stop()
        if reason is not None:
            await self._close_all(reason)

    async def _read_until(self, reader: Reader, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self._closer.room()
            await self._poll(reader)

    async def _read_to_end(self, reader: Reader, *, by_clock: bool) -> None:
        ended: set[int] = set()
        empty = 0
        while empty < EMPTY_POLLS and not (self._owned and ended >= self._owned.keys()):
            await self._closer.room()
            batch = await self._poll(reader, by_clock=by_clock)
            ended -= {record.position.partition for record in batch.records}
            ended |= batch.ends.keys()
            empty = 0 if self._owned else empty + 1

    async def _poll(self, reader: Reader, *, by_clock: bool = True) -> Batch:
        batch = await self._retry.log("read spans", lambda: reader.poll(timeout=POLL))
        self._revoke(batch.revoked)
        for assigned in batch.assigned:
            await self._assign(assigned)
        if batch.assigned:
            self._kept.clear()
        for number, record in enumerate(batch.records, start=1):
            await self._take(record)
            if number % TURN == 0:
                await asyncio.sleep(0)
        for partition, now in batch.ends.items():
            if by_clock and partition in self._owned:
                await self._closer.put(self._owned[partition], self._owned[partition].tick(now))
        await self._bound_marks()
        if self._should_commit(batch):
            await self._closer.commit()
        self._counts.held(self._owned.values())
        return batch

    async def _take(self, record: Record) -> None:
        buffer = self._owned.get(record.position.partition)
        if buffer is None:
            return
        step = buffer.take(record)
        self._counts.step(record.position, step)
        if not step.needed:
            self._log.release([record.position])
        if step.closings:
            await self._closer.put(buffer, step.closings)
        while sum(each.size for each in self._owned.values()) > self._windows.memory:
            await self._relieve(list(self._owned.values()))

    async def _relieve(self, buffers: Sequence[Buffer]) -> None:
        """Close the oldest open trace of all."""
        aged = [(buffer.oldest, buffer.partition, buffer) for buffer in buffers]
        _, _, buffer = min(
            (age, partition, buffer) for age, partition, buffer in aged if age is not None
        )
        await self._closer.put(buffer, [buffer.relieve()])

    async def _bound_marks(self) -> None:
        """Forget the oldest marks; where re-reads still need them, close the trace that holds the low-water."""
        while sum(len(each.marks) for each in self._owned.values()) > self._max_marks:
            buffer = max(self._owned.values(), key=lambda each: len(each.marks))
            if buffer.evict():
                self._counts.evicted(1)
                continue
            if buffer.is_idle and buffer.oldest is not None:
                await self._closer.put(buffer, [buffer.relieve()])
            return

    # --- partitions ----------------------------------------------------------------------------------------------

    def _revoke(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            buffer = self._owned.pop(partition, None)
            if buffer is not None:
                self._kept[partition] = buffer

    async def _assign(self, assigned: Assigned) -> None:
        """Take a buffer up again, or begin one: its marks are read before its first span (rule 2)."""
        kept = self._kept.pop(assigned.partition, None)
        if kept is not None and kept.committed[0] == assigned.offset:
            self._owned[assigned.partition] = kept
            return
        marks = await self._retry.log("read marks", lambda: self._replay(assigned))
        self._owned[assigned.partition] = Buffer(
            assigned.partition, self._windows.trace, marks, start=assigned.offset
        )

    async def _replay(self, assigned: Assigned) -> Marks:
        marks = Marks(assigned.metadata)
        async for record in self._log.replay(CLOSINGS, assigned.partition, assigned.metadata):
            try:
                marks.add(decode_mark(record.value), record.position.offset)
            except Undecodable as error:
                self._counts.poison(record.position, str(error))
        return marks

    # --- commits -------------------------------------------------------------------------------------------------

    def _commits(self) -> list[Commit]:
        commits = (buffer.commit(self._group) for buffer in self._owned.values())
        return [commit for commit in commits if commit is not None]

    def _committed(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            buffer = self._owned.get(commit.partition)
            if buffer is not None:
                buffer.committed = (commit.offset, commit.metadata)

    def _should_commit(self, batch: Batch) -> bool:
        """At the end of a partition with nothing on its way, or far ahead of the last commit."""
        for partition, buffer in self._owned.items():
            low_water, committed = buffer.low_water, buffer.committed[0]
            if low_water is None or low_water == committed:
                continue
            if partition in batch.ends and buffer.is_idle:
                return True
            if low_water - (committed or 0) >= COMMIT_EVERY:
                return True
        return False

    # --- the end -------------------------------------------------------------------------------------------------

    async def _close_all(self, reason: Literal["shutdown", "end"]) -> None:
        rootless = "shutdown" if reason == "shutdown" else "idle"
        closings = [
            (buffer, closing)
            for buffer in self._owned.values()
            for closing in buffer.drain(rootless=rootless)
        ]
        closings.sort(key=lambda each: _order(each[1]))
        await self._closer.in_order(closings)


def _order(closing: Closing) -> tuple[int, bytes]:
    return first_start(closing.pieces), closing.trace_id
