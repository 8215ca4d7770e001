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
from collector.otlp.repair import DecodedRequest
from collector.otlp.signal import OtlpSignal
from collector.otlp.split import SplitRequest
from collector.receiver.families import ReceiverFamilies
from collector.receiver.splitter import Splitter

GROUP = "logs"
_TRANSPORT = "kafka"


class LogRequests(Consumer):
    """One member of the group that reads `logs`.

    Args:
        splitter: Makes records of requests.
        telemetry: For what is counted, as of requests that come to the ports.
    """

    def __init__(
        self,
        *,
        log: Log,
        signal: OtlpSignal,
        splitter: Splitter,
        telemetry: Telemetry,
    ) -> None:
        super().__init__(
            log=log,
            group=GROUP,
            topic=LOG_REQUESTS,
            retry=Retry("The logs reader"),
            telemetry=telemetry,
        )
        self._signal = signal
        self._splitter = splitter
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
            work = DecodedRequest(record.value), self._signal
            split, said = (
                self._splitter.split(*work)
                if len(record.value) <= self._signal.large
                else await asyncio.to_thread(self._splitter.split, *work)
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
