"""One reader of topic `signals` per sink: deliver, then commit. A slow or dead sink delays nobody else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from collector.clock import Clock
from collector.errors import Retryable
from collector.log.port import (
    BACKGROUND_LINGER,
    SIGNALS,
    Backlog,
    Batch,
    Commit,
    Log,
    Reader,
    Record,
)
from collector.runtime.retry import Backoff
from collector.signals.sinks.port import Refused, Sink, delivery_group
from collector.telemetry import Telemetry

logger = logging.getLogger(__name__)

MAX_RECORDS = 1024
"""One batch, which the log bounds by bytes, too. All that is ever held in memory."""


class Delivery:
    """Brings every signal to one sink, at least once and in order, with a commit of its own (`sink.<name>`).

        poll -> sink.deliver, again and again until it works -> commit

    What cannot be delivered now waits in the log, within its share; what the log had to drop before this sink had
    it, and what the sink refuses for ever, is counted as lost.
    """

    def __init__(
        self,
        *,
        log: Log,
        sink: Sink,
        telemetry: Telemetry,
        clock: Clock,
        backoff: Backoff | None = None,
        grace: float = 5.0,
    ) -> None:
        """Take the port, the sink and how many seconds a stop may take at most (`grace`, for each of two steps)."""
        self._log = log
        self._sink = sink
        self._group = delivery_group(sink.name)
        self._telemetry = telemetry
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._grace = grace
        self._commits: dict[int, Commit] = {}
        self._limit: asyncio.Timeout | None = None
        self._end: float | None = None
        self._failing = False
        for result in ("acked", "retried", "lost"):
            telemetry.signals.labels(sink.name, result)

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until `stopping` is set; then give the batch in hand `grace` seconds, and close the sink."""
        reader = self._log.read(self._group, SIGNALS, linger=BACKGROUND_LINGER)
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._bound_when(stopping))
                await self._loop(reader, stopping)
                watch.cancel()
        finally:
            await self._sink.close(self._grace)
            await reader.close()

    async def _bound_when(self, stopping: asyncio.Event) -> None:
        await stopping.wait()
        self._end = asyncio.get_running_loop().time() + self._grace
        if self._limit is not None:
            self._limit.reschedule(self._end)

    async def _loop(self, reader: Reader, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                batch = await reader.poll(max_records=MAX_RECORDS, timeout=1.0)
            except Retryable as error:
                logger.warning("cannot read signals for `%s`: %s", self._sink.name, error)
                await self._backoff.wait(stopping)
                continue
            self._take_over(batch)
            if batch.records and await self._deliver_all(batch.records, stopping):
                self._done_with(batch.records)
            await self._commit()
            await self._show((), idle=not batch.records)

    def _take_over(self, batch: Batch) -> None:
        """What another owner now has is no longer ours to commit; what expired unread is lost."""
        for partition in batch.revoked:
            self._commits.pop(partition, None)
        for partition, count in batch.lost.items():
            self._count("lost", count)
            logger.error(
                "signals were dropped by the log before `%s` had them: partition %d, %d records",
                self._sink.name,
                partition,
                count,
            )

    async def _deliver_all(self, records: Sequence[Record], stopping: asyncio.Event) -> bool:
        """Try until it works; False when the stop came first."""
        self._backoff.reset()
        while True:
            await self._show(records)
            try:
                async with asyncio.timeout_at(self._end) as self._limit:
                    await self._sink.deliver(records)
            except Refused as refused:
                self._refuse(refused)
                self._count("acked", len(records) - len(refused.reasons))
                return True
            except Retryable as error:
                self._failed(error, len(records))
            except TimeoutError:
                return False
            else:
                self._count("acked", len(records))
                self._recovered()
                return True
            finally:
                self._limit = None
            if stopping.is_set():
                return False
            await self._backoff.wait(stopping)

    def _refuse(self, refused: Refused) -> None:
        self._count("lost", len(refused.reasons))
        for position, reason in refused.reasons.items():
            logger.error(
                "signal refused for ever by `%s`: %s: %s", self._sink.name, position, reason
            )

    def _failed(self, error: Retryable, count: int) -> None:
        self._count("retried", count)
        if not self._failing:
            logger.warning("sink `%s` is failing, signals wait: %s", self._sink.name, error)
        self._failing = True

    def _recovered(self) -> None:
        if self._failing:
            logger.info("sink `%s` works again", self._sink.name)
        self._failing = False

    def _done_with(self, records: Sequence[Record]) -> None:
        newest = {record.position.partition: record.position.offset for record in records}
        for partition, offset in newest.items():
            self._commits[partition] = Commit(
                group=self._group, topic=SIGNALS, partition=partition, offset=offset + 1
            )

    async def _commit(self) -> None:
        """Store what is done with; what cannot be stored now is stored with the next batch."""
        if not self._commits:
            return
        try:
            await self._log.write((), tuple(self._commits.values()))
        except Retryable as error:
            logger.warning("cannot commit signals of `%s`: %s", self._sink.name, error)
        else:
            self._commits.clear()

    async def _show(self, waiting: Sequence[Record], *, idle: bool = False) -> None:
        """Keep the outbox gauges true: what waits here and, where the log can say, what waits in the log."""
        count = len(waiting)
        if isinstance(self._log, Backlog):
            try:
                count = max(count, await self._log.backlog(self._group, SIGNALS))
            except Retryable:
                count = max(count, 0)
        if waiting or idle or isinstance(self._log, Backlog):
            self._telemetry.outbox_records.labels(self._sink.name).set(count)
        if waiting or idle:
            oldest = min((record.time for record in waiting), default=0.0)
            self._telemetry.outbox_oldest.labels(self._sink.name).set(oldest)

    def _count(self, result: str, count: int) -> None:
        self._telemetry.signals.labels(self._sink.name, result).inc(count)
