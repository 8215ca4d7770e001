"""Two readers fill the index: groups `api.traces` and `api.signals`.

    1. poll
    2. index the batch, in a thread
    3. offer new signals to the live stream
    4. commit, at most once a second

A crash between 2 and 4 reads records again; the index takes the same record twice without a change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress

from collector.api.index import Index, Taken
from collector.api.stream import Stream
from collector.clock import Clock
from collector.errors import Retryable
from collector.log.port import (
    BACKGROUND_LINGER,
    SIGNALS,
    TRACES,
    Batch,
    Commit,
    Log,
    Reader,
    Record,
)
from collector.telemetry import Telemetry

logger = logging.getLogger(__name__)

TRACES_GROUP, SIGNALS_GROUP = "api.traces", "api.signals"
COMMIT_EVERY = 1.0
PAUSE = 1.0
"""Seconds to wait after the log could not be reached."""


class Feed:
    """Reads until `stopping` is set."""

    def __init__(
        self, *, log: Log, index: Index, stream: Stream, telemetry: Telemetry, clock: Clock
    ) -> None:
        self._log = log
        self._index = index
        self._stream = stream
        self._telemetry = telemetry
        self._clock = clock

    async def run(self, stopping: asyncio.Event) -> None:
        """Fill the index; ends soon after `stopping`, with everything committed that was indexed."""
        # One thread: LMDB has one writer, and the event loop never waits for its disk.
        with ThreadPoolExecutor(1, thread_name_prefix="index") as thread:
            async with asyncio.TaskGroup() as tasks:
                for group, topic, take in (
                    (TRACES_GROUP, TRACES, self._index.take_traces),
                    (SIGNALS_GROUP, SIGNALS, self._index.take_signals),
                ):
                    tasks.create_task(self._follow(group, topic, take, thread, stopping))

    async def _follow(
        self,
        group: str,
        topic: str,
        take: Callable[[Sequence[Record]], Taken],
        thread: Executor,
        stopping: asyncio.Event,
    ) -> None:
        reader = self._log.read(group, topic, linger=BACKGROUND_LINGER)
        done = _Done(group, topic, self._clock)
        try:
            while not stopping.is_set():
                try:
                    await self._step(reader, take, thread, done)
                except Retryable:
                    logger.warning("log cannot be reached, trying again", extra={"topic": topic})
                    await _pause(stopping)
            with suppress(Retryable):
                await self._commit(done)
        finally:
            await reader.close()

    async def _step(
        self,
        reader: Reader,
        take: Callable[[Sequence[Record]], Taken],
        thread: Executor,
        done: _Done,
    ) -> None:
        batch = await reader.poll()
        done.forget(batch.revoked)
        if batch.records:
            loop = asyncio.get_running_loop()
            taken = await loop.run_in_executor(thread, take, batch.records)
            self._stream.publish(taken.signals)
            self._name_poison(taken)
            done.add(batch)
        if done.is_due():
            await self._commit(done)

    async def _commit(self, done: _Done) -> None:
        commits = done.commits()
        if commits:
            await self._log.write((), commits)
            done.settle(commits)

    def _name_poison(self, taken: Taken) -> None:
        for position, why in taken.poison:
            self._telemetry.poison_records.labels(position.topic).inc()
            logger.error(
                "record cannot be indexed, passed over",
                extra={**position._asdict(), "why": why},
            )


class _Done:
    """What has been indexed and not yet committed. Pure."""

    def __init__(self, group: str, topic: str, clock: Clock) -> None:
        self._group, self._topic, self._clock = group, topic, clock
        self._next: dict[int, int] = {}
        self._committed_at = clock()

    def add(self, batch: Batch) -> None:
        for record in batch.records:
            self._next[record.position.partition] = record.position.offset + 1

    def forget(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._next.pop(partition, None)

    def is_due(self) -> bool:
        return bool(self._next) and abs(self._clock() - self._committed_at) >= COMMIT_EVERY

    def commits(self) -> list[Commit]:
        return [
            Commit(group=self._group, topic=self._topic, partition=partition, offset=offset)
            for partition, offset in sorted(self._next.items())
        ]

    def settle(self, commits: Sequence[Commit]) -> None:
        self._committed_at = self._clock()
        for commit in commits:
            if self._next.get(commit.partition) == commit.offset:
                del self._next[commit.partition]


async def _pause(stopping: asyncio.Event) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(PAUSE):
            await stopping.wait()
