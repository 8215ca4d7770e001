"""Everything that was taken, passed on to the user's own backend: one more reader of topic `spans`.

    spans -> the requests that each record stands for -> without what has come back -> backend -> commit

Nothing waits for it. While the backend is away the commit stays, and what it has not got waits in the log for as long
as the log keeps it. A crash sends at most the requests since the last commit again.
"""

import asyncio
import logging
from functools import partial

from collector.base.clock import Clock
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.forward.backend import Backend, Backends, Part, StopCameFirst
from collector.forward.loop import Forwarded
from collector.log.consumer import Consumer
from collector.log.port import SPANS, Assigned, Batch, Commit, Ends, Log, Record
from collector.otlp.items import keys_of, only
from collector.otlp.sent_form import SentRequests, as_sent, unread_in

GROUP = "forward"
MAX_RECORDS = 1024
"""Of one batch, which the log also bounds by bytes: on Kafka a record is one trace's spans of a request."""

_log = logging.getLogger(__name__)


class Forwarder(Consumer):
    """One member of the group that forwards.

    Args:
        backends: Where it goes.
        has_begun: Set once the partitions that it has got first are committed: what is written from then on is
            forwarded.
        drains: The process will not come back: a stop forwards what the log holds.
        unread_only: Only log records that nothing here reads: the rest is of traces that `Keeper` decides of.
    """

    def __init__(
        self,
        *,
        log: Log,
        backends: Backends,
        telemetry: Telemetry,
        clock: Clock,
        has_begun: asyncio.Event,
        drains: bool = False,
        unread_only: bool = False,
    ) -> None:
        super().__init__(
            log=log,
            group=GROUP,
            topic=SPANS,
            retry=Retry("Forwarding"),
            telemetry=telemetry,
            max_records=MAX_RECORDS,
        )
        self._backends = backends
        self._clock = clock
        self._drains = drains
        self._unread_only = unread_only
        self._forwarded = {each: Forwarded(clock) for each in backends}
        self._is_looping = False
        self._stopping = asyncio.Event()
        self._begins: dict[int, int] = {}
        """By partition that no one has forwarded from before: where it ended when this member got it."""
        self._has_begun = has_begun

    async def run(self, stopping: asyncio.Event) -> None:
        """Forward until `stopping` is set; the request in hand has a few seconds then."""
        self._stopping = stopping
        try:
            await super().run(stopping)
        except* StopCameFirst:
            pass
        finally:
            for backend in self._backends:
                await backend.close()

    async def assign(self, assigned: Assigned) -> None:
        """Begin at the end where no one has forwarded before: a backend is not sent a log's whole history."""
        for backend in self._backends:  # what is read again has not come back
            self._forwarded[backend] = Forwarded(self._clock)
        log = self._log_port
        if assigned.offset is None and isinstance(log, Ends):
            partition = assigned.partition
            end = await self._retry.log("find its place", lambda: log.end(SPANS, partition))
            commit = Commit(group=GROUP, topic=SPANS, partition=partition, offset=end)
            await self._retry.log(f"commit {SPANS}", lambda: log.write((), [commit]))
            self._begins[partition] = end
        self._has_begun.set()

    async def take(self, batch: Batch) -> None:
        """The backend has every record of the batch when this returns, or will never take it."""
        for partition, count in batch.lost.items():
            if partition not in self._begins:
                self._backends.spans.count("expired", count)
                _log.error(
                    "The log dropped records before they were forwarded: partition %d, %d records",
                    partition,
                    count,
                )
        spans, logs = list[Part](), list[Part]()
        records = [each for each in batch.records if self._is_ours(each)]
        for record in records:
            sent = self._sent(record.value)
            spans += await self._news(self._backends.spans, sent.spans, record)
            logs += await self._news(self._backends.log_records, sent.log_records, record)
        await self._backends.spans.deliver(spans, self._stopping)
        await self._backends.log_records.deliver(logs, self._stopping)
        for record in records:
            self._offsets.done(record.position)

    def _sent(self, value: bytes) -> SentRequests:
        return SentRequests(b"", unread_in(value)) if self._unread_only else as_sent(value)

    def _is_ours(self, record: Record) -> bool:
        _, partition, offset = record.position
        if offset < self._begins.get(partition, 0):
            return False
        self._begins.pop(partition, None)
        return True

    async def commit(self) -> None:
        if not self._backends.are_holding:
            await super().commit()

    async def finish(self) -> None:
        self._at_end.clear()
        while self._drains and not self._has_read_all:
            await self.step()
        await self.commit()

    async def _news(self, backend: Backend, request: bytes, record: Record) -> list[Part]:
        """The request without what was forwarded within the last minute; nothing if nothing is left."""
        if not request:
            return []
        keys = await backend.read(request, keys_of)
        met = self._forwarded[backend].again(keys, record.time)
        if not met:
            return [Part(request, len(keys))]
        if not self._is_looping:
            self._is_looping = True
            _log.warning(
                "What was forwarded comes back to this receiver: forward.endpoint leads to it again, such as through"
                " a Collector. It is not forwarded a second time (spanwise_forward_requests_total, returned);"
                " docs/collector.md."
            )
        backend.count("returned")
        rest = await backend.read(request, partial(only, wanted=lambda at: at not in met))
        return [Part(rest, len(keys) - len(met))] if rest else []
