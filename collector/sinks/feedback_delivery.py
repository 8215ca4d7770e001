"""Feedback to the sinks that hand on what arrives: one reader of topic `feedback` for each, beside its signals."""

import asyncio
import logging
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from collector.base.errors import Retryable, Undecodable
from collector.base.retry import Backoff, Retry
from collector.base.telemetry import Telemetry
from collector.log.consumer import Consumer
from collector.log.port import BACKGROUND_LINGER, FEEDBACK, Batch, Headers, Log, Position, Record
from collector.records.cloud_events import feedback_headers
from collector.records.feedback import decode_feedback
from collector.sinks.families import SinkFamilies
from collector.sinks.port import Refused, delivery_group

_log = logging.getLogger(__name__)


class OutgoingFeedback(NamedTuple):
    position: Position
    key: bytes
    json: bytes
    headers: Headers


@runtime_checkable
class TakesFeedback(Protocol):
    name: ClassVar[str]

    async def deliver_feedback(self, feedback: Sequence[OutgoingFeedback]) -> None:
        """As `Sink.deliver`.

        Raises Retryable: not all of it could be delivered now. Raises Refused: some can never be; all others are
        delivered.
        """
        ...


def feedback_group(sink: str) -> str:
    """The group whose commits hold the feedback that the sink of this name has not delivered."""
    return f"{delivery_group(sink)}.feedback"


class FeedbackDelivery(Consumer):
    """Brings feedback to one sink, at least once and in order of arrival."""

    def __init__(self, *, log: Log, sink: TakesFeedback, telemetry: Telemetry) -> None:
        """`sink` belongs to its `Delivery`, which closes it."""
        super().__init__(
            log=log,
            group=feedback_group(sink.name),
            topic=FEEDBACK,
            retry=Retry(f"Sink `{sink.name}`"),
            telemetry=telemetry,
            linger=BACKGROUND_LINGER,
        )
        self._sink = sink
        self._results = SinkFamilies(telemetry).feedback
        self._backoff = Backoff()
        self._stopping = asyncio.Event()

    async def run(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        await super().run(stopping)

    async def take(self, batch: Batch) -> None:
        """Deliver the records; those that a stop interrupts are delivered again after the next start."""
        handed: list[OutgoingFeedback] = []
        for record in batch.records:
            try:
                if (said := _handed_on(record)) is not None:
                    handed.append(said)
            except Undecodable as error:
                self._poison.unprocessable(record.position, error)
        if handed and not await self._deliver(handed):
            return
        for record in batch.records:
            self._offsets.done(record.position)

    async def _deliver(self, handed: Sequence[OutgoingFeedback]) -> bool:
        """Repeat until the sink has it; False if the stop came first."""
        self._backoff.reset()
        while True:
            refused = 0
            try:
                await self._sink.deliver_feedback(handed)
            except Refused as error:
                refused = sum(each.position in error.reasons for each in handed)
            except Retryable:
                self._results.labels(self._sink.name, "retried").inc(len(handed))
                if self._stopping.is_set():
                    return False
                await self._backoff.wait(self._stopping)
                continue
            self._results.labels(self._sink.name, "acked").inc(len(handed) - refused)
            self._results.labels(self._sink.name, "lost").inc(refused)
            return True


def _handed_on(record: Record) -> OutgoingFeedback | None:
    """None: it is a score, which is handed on as a signal."""
    said = decode_feedback(record.value)
    if said.kind != "human":
        return None
    kind, ident = said.subject
    span = (ident, said.span_id) if kind == "trace" and said.span_id else None
    headers = feedback_headers(
        said.id, service=said.service, subject=f"{kind}/{ident}", time=said.time, span=span
    )
    return OutgoingFeedback(record.position, ident.encode(), record.value, headers)
