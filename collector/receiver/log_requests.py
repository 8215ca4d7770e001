"""Requests of log records that a Collector wrote to Kafka, taken in as the ports would take them.

    topic logs --split--> topic spans

A Collector's Kafka exporter writes whole requests, under any key: what is said of a turn then is in any partition.
Here each request is split, and its spans are written under the keys of their owners. The commit comes after the write,
so a crash between the two writes the same spans again, which are duplicates.
"""

import asyncio

from collector.base.errors import RecordTooLarge, TooLarge, Undecodable
from collector.base.retry import Retry
from collector.base.telemetry import Telemetry
from collector.log.consumer import Consumer
from collector.log.port import LOG_REQUESTS, Batch, Log, New, Record
from collector.otlp.redaction import Redact
from collector.otlp.repair import DecodedRequest
from collector.otlp.signal import OtlpSignal
from collector.otlp.split import SplitRequest
from collector.receiver.families import ReceiverFamilies
from collector.receiver.feedback.found import FeedbackReader, FoundFeedback
from collector.receiver.unread import unread_records

GROUP = "logs"
_TRANSPORT = "kafka"


class LogRequests(Consumer):
    """One member of the group that reads `logs`.

    Args:
        max_item: The largest record in bytes; larger ones are passed over and counted.
        telemetry: For what is counted, as of requests that come to the ports.
        redact: Takes secrets out before anything is written.
        keeps_unread: See `Intake`.
        feedback: Reads what the records say of traces and sessions.
    """

    def __init__(
        self,
        *,
        log: Log,
        signal: OtlpSignal,
        max_item: int,
        telemetry: Telemetry,
        redact: Redact | None = None,
        keeps_unread: bool = False,
        feedback: FeedbackReader,
    ) -> None:
        super().__init__(
            log=log,
            group=GROUP,
            topic=LOG_REQUESTS,
            retry=Retry("The logs reader"),
            telemetry=telemetry,
        )
        self._signal = signal
        self._max_item = max_item
        self._redact = redact
        self._keeps_unread = keeps_unread
        self._feedback = feedback
        families = ReceiverFamilies(telemetry)
        self._received = families.received[signal.items]
        self._dropped = families.dropped[signal.items]
        self._feedback_received = families.feedback_received

    async def take(self, batch: Batch) -> None:
        for record in batch.records:
            await self._take(record)
            self._offsets.done(record.position)

    async def _take(self, record: Record) -> None:
        try:
            split, said = (
                self._split(record.value)
                if len(record.value) <= self._signal.large
                else await asyncio.to_thread(self._split, record.value)
            )
            new = [New(topic=self._signal.topic, key=p.key, value=p.value) for p in split.pieces]
            new += said.records
            if new:
                await self._retry.log("write spans", lambda: self._log_port.write(new))
        except (Undecodable, TooLarge, RecordTooLarge) as error:
            self._poison.unprocessable(record.position, error)
            return
        self._count(split)
        for result, items in said.results.items():
            self._feedback_received.labels(_TRANSPORT, result).inc(items)

    def _split(self, request: bytes) -> tuple[SplitRequest, FoundFeedback]:
        decoded = DecodedRequest(request)
        if self._redact is not None:
            decoded = self._redact(decoded, self._signal.request)
        split = self._signal.split(decoded.request, max_item=self._max_item)
        split.add(decoded)
        said = self._feedback.in_otlp(split.request or decoded.request, self._signal.items)
        if self._keeps_unread:
            said.records += unread_records(decoded.request, split, self._signal)
        return split, said

    def _count(self, split: SplitRequest) -> None:
        results = {
            "accepted": split.accepted,
            "invalid": split.invalid,
            "too_large": split.too_large,
        }
        for result, items in results.items():
            if items:
                self._received.labels(_TRANSPORT, result).inc(items)
        for why, items in split.dropped.items():
            self._dropped.labels(why).inc(items)
