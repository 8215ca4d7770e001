"""One reader of topic `signals` per sink: deliver, then commit. A slow or dead sink delays no other sink."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from contextlib import suppress

from collector.base.errors import Retryable, Undecodable
from collector.base.families import RuntimeFamilies
from collector.base.retry import Backoff, Retry
from collector.base.supervisor import reason_of
from collector.base.telemetry import Telemetry
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, SIGNALS, Backlog, Batch, Log, Record
from collector.records.published_signals import PublishedSignals
from collector.signals.sinks.families import SinkFamilies
from collector.signals.sinks.port import Refused, Sink, delivery_group

_log = logging.getLogger(__name__)

MAX_RECORDS = 1024
"""Of one batch, which the log also bounds by bytes: the most that is held in memory, twice."""
_RETRY = 0.2
"""Seconds between two tries, and that a poll waits, while a stop has everything delivered."""


class Delivery(Consumer):
    """Brings every signal to one sink, at least once and in order, with a commit of its own (`sink.<name>`).

        poll -> sink.deliver, repeated until it succeeds -> commit

    Signals that cannot be delivered now wait in the log, within its share. Signals that the log dropped before the
    sink had them, or that the sink will never take, are counted as lost.
    """

    def __init__(
        self,
        *,
        log: Log,
        sink: Sink,
        telemetry: Telemetry,
        backoff: Backoff | None = None,
        grace: float = 5.0,
        drains: bool = False,
    ) -> None:
        """Deliver to `sink`; a stop waits at most `grace` seconds for the batch in hand, and as long for the sink.

        `drains`: the process will not come back, so a stop delivers everything that the log holds, within the grace.
        """
        super().__init__(
            log=log,
            group=delivery_group(sink.name),
            topic=SIGNALS,
            retry=Retry(f"Sink `{sink.name}`"),
            telemetry=telemetry,
            max_records=MAX_RECORDS,
            linger=BACKGROUND_LINGER,
        )
        self._sink = sink
        families = SinkFamilies(telemetry)
        self._acked = families.signals.labels(sink.name, "acked")
        self._retried = families.signals.labels(sink.name, "retried")
        self._lost = families.signals.labels(sink.name, "lost")
        self._failures = RuntimeFamilies(telemetry).room_failures
        self._waiting = families.outbox_records.labels(sink.name)
        self._oldest = families.outbox_oldest
        self._backoff = backoff or Backoff()
        self._grace = grace
        self._drains = drains
        self._has_failed_at_stop = False
        """Whether a batch could not be delivered before the stop: what follows it must not pass it."""
        self._stopping = asyncio.Event()
        self._limit: asyncio.Timeout | None = None
        self._end: float | None = None
        self._failing = False
        self._idle = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until `stopping` is set; then give the batch in hand `grace` seconds, and close the sink."""
        self._stopping = stopping
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._limit_when_stopping())
                await super().run(stopping)
                watch.cancel()
        finally:
            await self._sink.close(self._grace)

    async def take(self, batch: Batch) -> None:
        """Deliver the records; those that a stop interrupts are delivered again after the next start."""
        for partition, count in batch.lost.items():
            self._lost.inc(count)
            _log.error(
                "Signals were dropped by the log before sink `%s` had them: partition %d, %d signals",
                self._sink.name,
                partition,
                count,
            )
        self._idle = not batch.records
        if not batch.records:
            return
        signals, unreadable = _signals(batch.records)
        if signals and not await self._deliver(signals):
            self._has_failed_at_stop = True
            return
        for record, error in unreadable:
            self._lost.inc(record.count)
            _log.error(
                "A record for sink `%s` holds no signals: %s: %s",
                self._sink.name,
                record.position,
                error,
            )
        for record in batch.records:
            self._offsets.done(record.position)

    async def commit(self) -> None:
        """Store the offsets of the delivered signals, and show what is left."""
        await super().commit()
        await self._show(None, idle=self._idle)

    async def finish(self) -> None:
        """Every batch is committed when it is delivered; a drain delivers what is left."""
        if not self._drains:
            return
        self._at_end.clear()  # what was written since the last poll is to be read too
        self._timeout = _RETRY
        while not (self._has_read_all or self._has_failed_at_stop):
            await self.step()
        if self._has_failed_at_stop:
            _log.error(
                "Sink `%s` did not take every signal before the stop; a durable log keeps the rest",
                self._sink.name,
            )

    async def _limit_when_stopping(self) -> None:
        await self._stopping.wait()
        self._end = asyncio.get_running_loop().time() + self._grace
        if self._limit is not None:
            self._limit.reschedule(self._end)

    async def _deliver(self, signals: PublishedSignals) -> bool:
        """Repeat until the sink has them; False if the stop came first."""
        self._backoff.reset()
        while True:
            await self._show(signals)
            try:
                async with asyncio.timeout_at(self._end) as self._limit:
                    await self._sink.deliver(signals)
            except Refused as refused:
                self._note_refused(refused)
                self._acked.inc(len(signals) - len(refused.reasons))
                return True
            except Retryable as error:
                self._note_failure(error, len(signals))
            except TimeoutError:
                return False
            else:
                self._acked.inc(len(signals))
                self._note_success()
                return True
            finally:
                self._limit = None
            if not self._stopping.is_set():
                await self._backoff.wait(self._stopping)
            elif self._drains and asyncio.get_running_loop().time() < (self._end or math.inf):
                await asyncio.sleep(_RETRY)
            else:
                return False

    def _note_refused(self, refused: Refused) -> None:
        self._lost.inc(len(refused.reasons))
        for position, reason in refused.reasons.items():
            _log.error(
                "A signal will never be taken by sink `%s`: %s: %s",
                self._sink.name,
                position,
                reason,
            )

    def _note_failure(self, error: Retryable, count: int) -> None:
        self._retried.inc(count)
        self._failures.labels(self._group, reason_of(error)).inc()
        if not self._failing:
            _log.warning("Sink `%s` fails; its signals wait in the log: %s", self._sink.name, error)
        self._failing = True

    def _note_success(self) -> None:
        if self._failing:
            _log.info("Sink `%s` works again.", self._sink.name)
        self._failing = False

    async def _show(self, waiting: PublishedSignals | None, *, idle: bool = False) -> None:
        """Set the outbox gauges: the signals that wait here and, where the log can count them, in the log.

        An empty outbox has no oldest signal: an age of 0 would read as 1970.
        """
        count = 0 if waiting is None else len(waiting)
        if isinstance(self._log_port, Backlog):
            with suppress(Retryable):  # while the log is away, only the batch in hand is known
                count = max(count, await self._log_port.backlog(self._group, SIGNALS))
        if waiting or idle or isinstance(self._log_port, Backlog):
            self._waiting.set(count)
        if waiting and waiting.oldest is not None:
            self._oldest.labels(self._sink.name).set(waiting.oldest)
        elif idle:
            self._oldest.remove_by_labels({"sink": self._sink.name})


def _signals(
    records: Sequence[Record],
) -> tuple[PublishedSignals, list[tuple[Record, Undecodable]]]:
    """The signals of all records, and the records that hold none, with the reason."""
    found = PublishedSignals()
    unreadable: list[tuple[Record, Undecodable]] = []
    for record in records:
        try:
            found.add(record)
        except Undecodable as error:
            unreadable.append((record, error))
    return found, unreadable
