"""One reader of topic `signals` per sink: deliver, then commit. A slow or dead sink delays no other sink."""

import asyncio
import logging
import math
from contextlib import suppress

from collector.base.errors import Retryable, Undecodable
from collector.base.families import RuntimeFamilies
from collector.base.retry import Backoff, Retry
from collector.base.supervisor import reason_of
from collector.base.telemetry import Telemetry
from collector.log.consumer import Consumer
from collector.log.port import (
    BACKGROUND_LINGER,
    SIGNALS,
    Batch,
    Log,
    Position,
    Record,
)
from collector.records.published_signals import PublishedSignals
from collector.sinks.families import SinkFamilies
from collector.sinks.port import Refused, SetsAside, Sink, delivery_group

_log = logging.getLogger(__name__)

MAX_RECORDS = 1024
"""Of one batch, which the log also bounds by bytes: the most that is held in memory, twice."""
_AGAIN = 5.0  # seconds until signals that were set aside are tried again after a failure
_RETRY = 0.2
"""Seconds between two tries, and that a poll waits, while a stop has everything delivered."""


class Delivery(Consumer):
    """Brings every signal to one sink, at least once and in order, with a commit of its own (`sink.<name>`).

        poll -> sink.deliver, repeated until it succeeds -> commit

    Where the sink sets signals aside (`SetsAside`) the commit stays at the oldest of them, and the others go on.
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
        self._unmatched = families.signals.labels(sink.name, "unmatched")
        self._aside = sink if isinstance(sink, SetsAside) else None
        self._read: dict[int, int] = {}
        """By partition, the offset of the newest record that was delivered or set aside."""
        self._firsts: dict[Position, int] = {}
        """By signal that is set aside, the first offset of its record."""
        self._counted = (0, 0)
        """How many were set aside, and given up, when signals were last counted."""
        self._again_at = 0.0  # after a failure, when signals that were set aside are tried again, in the loop's time
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
        if self._aside is not None:
            await self._try_again(self._aside)
        if not batch.records:
            return
        signals, unreadable = PublishedSignals(), list[tuple[Record, Undecodable]]()
        for record in batch.records:
            try:
                signals.add(record)
            except Undecodable as error:
                unreadable.append((record, error))
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
            self._note_read(record)
        self._done()

    async def revoke(self, partition: int) -> None:
        self._read.pop(partition, None)
        if self._aside is not None:
            self._aside.forget(partition)
            self._counted = (len(self._aside.waiting), self._aside.unmatched)
            self._firsts = {
                p: first for p, first in self._firsts.items() if p.partition != partition
            }

    def _note_read(self, record: Record) -> None:
        _, partition, last = record.position
        self._read[partition] = last
        if self._aside is None:
            return
        for offset in range(record.first, last + 1):
            position = Position(SIGNALS, partition, offset)
            if position in self._aside.waiting:
                self._firsts[position] = record.first

    def _done(self) -> None:
        """Everything up to the newest record, or to the oldest signal that is set aside."""
        ends = dict(self._read)
        if self._aside is not None:
            waiting = self._aside.waiting
            self._firsts = {p: first for p, first in self._firsts.items() if p in waiting}
            for position, first in self._firsts.items():
                ends[position.partition] = min(ends[position.partition], first - 1)
        for partition, offset in ends.items():
            if offset >= 0:
                self._offsets.done(Position(SIGNALS, partition, offset))

    async def _try_again(self, aside: SetsAside) -> None:
        """Those of the signals set aside that are due; a failure of theirs delays no others."""
        now = asyncio.get_running_loop().time()
        if not aside.waiting or now < self._again_at:
            return
        refused = 0
        try:
            async with asyncio.timeout_at(self._end):
                await aside.again()
        except Refused as error:
            refused = self._note_refused(error)
        except Retryable as error:
            self._note_failure(error, 0)
            self._again_at = now + (error.after or _AGAIN)
        except TimeoutError:
            return
        self._note_taken(-refused)
        self._done()

    async def commit(self) -> None:
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
            after = 0.0
            try:
                async with asyncio.timeout_at(self._end) as self._limit:
                    await self._sink.deliver(signals)
            except Refused as refused:
                self._note_taken(len(signals) - self._note_refused(refused))
                return True
            except Retryable as error:
                self._note_failure(error, len(signals))
                after = error.after or 0.0
            except TimeoutError:
                return False
            else:
                self._note_taken(len(signals))
                self._note_success()
                return True
            finally:
                self._limit = None
            if not self._stopping.is_set():
                await self._backoff.wait(self._stopping, at_least=after)
            elif self._drains and asyncio.get_running_loop().time() < (self._end or math.inf):
                await asyncio.sleep(_RETRY)
            else:
                return False

    def _note_taken(self, count: int) -> None:
        """The sink has these beside what it set aside before; some of all may wait now, or be given up."""
        waited, gone = self._counted
        if self._aside is not None:
            self._counted = (len(self._aside.waiting), self._aside.unmatched)
        waiting, unmatched = self._counted
        self._unmatched.inc(unmatched - gone)
        self._acked.inc(max(0, count + waited - waiting - (unmatched - gone)))

    def _note_refused(self, refused: Refused) -> int:
        self._lost.inc(len(refused.reasons))
        for position, reason in refused.reasons.items():
            _log.error(
                "A signal will never be taken by sink `%s`: %s: %s",
                self._sink.name,
                position,
                reason,
            )
        return len(refused.reasons)

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
        """Set the outbox gauges: the signals that wait here and in the log.

        An empty outbox has no oldest signal: an age of 0 would read as 1970.
        """
        count = 0 if waiting is None else len(waiting)
        with suppress(Retryable):  # while the log is away, only the batch in hand is known
            count = max(count, await self._log_port.backlog(self._group, SIGNALS))
        self._waiting.set(count)
        if waiting and waiting.oldest is not None:
            self._oldest.labels(self._sink.name).set(waiting.oldest)
        elif idle:
            self._oldest.remove_by_labels({"sink": self._sink.name})
