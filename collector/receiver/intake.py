"""The one path of both transports: admit, inflate, split, write to the log, answer.

OK is answered only after the log has the pieces.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from collector.base.clock import Clock
from collector.base.errors import LogFull, RecordTooLarge, Retryable, TooLarge, Undecodable
from collector.base.retry import Seldom
from collector.log.port import Log, New
from collector.otlp.signal import DroppedSignal, OtlpSignal
from collector.otlp.split import SplitRequest
from collector.receiver.admission import Admission, Ticket
from collector.receiver.answers import (
    OK,
    Behind,
    ReceiverReply,
    SlowSender,
    Stopping,
    reason,
    refused,
    taken,
    too_large,
    undecodable,
)
from collector.receiver.families import ReceiverFamilies
from collector.receiver.feedback.found import FoundFeedback
from collector.receiver.inflate import Decode, Inflate, protobuf
from collector.receiver.overload import Overload, Pace, ending
from collector.receiver.splitter import Splitter

Transport = Literal["grpc", "http"]
Result = Literal["accepted", "refused", "invalid", "too_large", "unauthenticated"]
Body = bytes | AsyncIterator[bytes] | Callable[[], Awaitable[bytes]]
"""A body that is there, one that comes in chunks, or one that is read once there is room."""

LARGE_TO_REDACT = 64 << 10
"""`OtlpSignal.large` at most where requests are redacted, which takes longer."""
IN_FLIGHT = 4  # times `max_request`: how many bytes may be in memory at once
BODY_TIMEOUT = 60.0
"""Seconds in which a body must be here whole: exporters give up after 10, slow links are given six times that."""

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Intake:
    """Takes requests in. Owned by one event loop."""

    log: Log  # where the pieces go
    max_request: int  # the largest request in bytes, as sent and after decompression
    splitter: Splitter
    families: ReceiverFamilies
    clock: Clock  # for the rate of log lines about own faults, and who was refused lately
    body_timeout: float = BODY_TIMEOUT  # seconds within which an HTTP body must arrive
    share: float = (
        0.5  # of the bytes in flight, what one sender may hold while others wait (`fairness.share`)
    )
    overload: Overload | None = None
    """Refuses what could not be scored in time; None: only what the log would refuse."""

    def __post_init__(self) -> None:
        self._overload = self.overload or Overload(clock=self.clock)
        # `labels` validates and locks, and these few children are needed for every request.
        self._requests = cache(self.families.requests.labels)
        self._received = cache(self.families.received_child)
        self._admission = Admission(
            limit=IN_FLIGHT * self.max_request,
            share=self.share,
            gauge=self.families.in_flight_bytes,
            clock=self.clock,
        )
        self._large = asyncio.Semaphore(1)
        self._stopping = False
        self._faults = Seldom(self.clock)

    def stop_accepting(self) -> None:
        """Refuse every request from now on; those that were admitted finish."""
        self._stopping = True

    def deny(
        self, signal: OtlpSignal, transport: Transport, answer: ReceiverReply
    ) -> ReceiverReply:
        """Count who may not send, answered so. The body is not read, so the request counts as one item."""
        self._count(signal, transport, "unauthenticated", 1)
        self._requests(transport, answer.code.name).inc()
        return answer

    def drop(
        self, signal: DroppedSignal, transport: Transport, denied: ReceiverReply | None
    ) -> ReceiverReply:
        """Count a request that is dropped unread, whatever the log has room for; `denied`: its sender may not send."""
        answer = denied or OK
        if answer is OK:
            self.families.requests_dropped.labels(transport, signal.name).inc()
        self._requests(transport, answer.code.name).inc()
        return answer

    async def take(
        self,
        body: Body,
        *,
        sender: str,
        signal: OtlpSignal,
        transport: Transport,
        decode: Decode,
    ) -> ReceiverReply:
        """Take one request in. Raises nothing: own faults are answered as UNAVAILABLE.

        `sender` is whose share of the bytes in flight it uses.
        """
        answer = await self._take(body, sender, signal, transport, decode)
        self._requests(transport, answer.code.name).inc()
        return answer

    async def _take(
        self,
        body: Body,
        sender: str,
        signal: OtlpSignal,
        transport: Transport,
        decode: Decode,
    ) -> ReceiverReply:
        split: SplitRequest | None = None
        try:
            with self._admission.ticket(sender) as ticket:
                plain = await self._plain(body, decode, ticket)
                split, said = await self._split(plain, decode, signal)
                await self._write(split, signal.topic, said.records)
        except Exception as error:  # noqa: BLE001 - whatever is not handled would reach the sender as UNKNOWN: data lost
            answer, result = self._fault(error)
            items = error.items if isinstance(error, TooLarge) else _items(split)
            self._count(signal, transport, result, items)
            if result == "refused":
                self.families.refused.labels(transport, reason(error)).inc()
            return answer
        self._count(signal, transport, "accepted", split.accepted)
        self._count(signal, transport, "invalid", split.invalid)
        self._count(signal, transport, "too_large", split.too_large)
        for why, items in split.dropped.items():
            self.families.dropped[signal.items].labels(why).inc(items)
        if split.repaired:
            self.families.strings_repaired.labels(transport).inc(split.repaired)
        for how, texts in (("marked", split.marked), ("whole", split.whole)):
            if texts:
                self.families.strings_redacted.labels(transport, how).inc(texts)
        self._count_feedback(said, transport)
        return taken(split, signal.items)

    async def take_feedback(
        self, body: Body, *, sender: str | ReceiverReply, inflate: Inflate, scores: bool = False
    ) -> tuple[ReceiverReply, FoundFeedback]:
        """Take one posted request of feedback or `scores` in; what was found in it, for the answer. Raises nothing.

        `sender`: as for `take`; or the answer to one who may not send.
        """
        if isinstance(sender, ReceiverReply):
            answer, found = sender, FoundFeedback(results=Counter(unauthenticated=1))
        else:
            answer, found = await self._take_feedback(body, sender, inflate, scores)
        self._count_feedback(found, "http")
        self._requests("http", answer.code.name).inc()
        return answer, found

    async def _take_feedback(
        self, body: Body, sender: str, inflate: Inflate, scores: bool
    ) -> tuple[ReceiverReply, FoundFeedback]:
        found = FoundFeedback()
        try:
            with self._admission.ticket(sender) as ticket:
                plain = await self._plain(body, protobuf(inflate), ticket)
                found = await self._posted(plain, scores)
                if found.records:
                    await self.log.write(found.records)
        except Exception as error:  # noqa: BLE001 - as for spans
            answer, result = self._fault(error)
            if result == "refused":
                self.families.refused.labels("http", reason(error)).inc()
            return answer, FoundFeedback(results=Counter({result: len(found.records) or 1}))
        is_wrong = not found.records and found.results["invalid"] > 0
        return (undecodable(found.rejected[0][1]) if is_wrong else OK), found

    async def _posted(self, body: bytes, scores: bool) -> FoundFeedback:
        reader = self.splitter.feedback
        if reader is None:
            raise Undecodable("this process takes no feedback")
        if len(body) <= LARGE_TO_REDACT:
            return reader.posted(body, scores=scores)
        async with self._large:
            return await asyncio.to_thread(reader.posted, body, scores=scores)

    async def _plain(self, body: Body, decode: Decode, ticket: Ticket) -> bytes:
        if self._stopping:
            raise Stopping("the receiver is stopping")
        self._overload.before_reading()
        if isinstance(body, bytes):
            ticket.grow(len(body))
        elif callable(body):
            body = await body()
            ticket.grow(len(body))
        else:
            body = await self._read(body, ticket)
        self._overload.before_splitting(body)
        plain = decode.inflate(body, self.max_request)
        ticket.grow(len(plain))
        return plain

    async def _split(
        self, plain: bytes, decode: Decode, signal: OtlpSignal
    ) -> tuple[SplitRequest, FoundFeedback]:
        def split() -> tuple[SplitRequest, FoundFeedback]:
            return self.splitter.split(decode.to_protobuf(plain), signal)

        redacts = self.splitter.redact is not None
        if len(plain) <= (min(signal.large, LARGE_TO_REDACT) if redacts else signal.large):
            return split()
        async with self._large:
            return await asyncio.to_thread(split)

    async def _read(self, chunks: AsyncIterator[bytes], ticket: Ticket) -> bytes:
        whole = bytearray()
        loop = asyncio.get_running_loop()
        pace = Pace.begin(loop.time(), timeout=self.body_timeout)
        try:
            async with ending(pace):
                async for chunk in chunks:
                    whole += chunk
                    if len(whole) > self.max_request:
                        raise TooLarge(f"the request is larger than {self.max_request} bytes")
                    ticket.grow(len(whole))
                    pace.took(len(chunk), loop.time())
        except TimeoutError as error:
            raise SlowSender(
                "the body did not arrive in time (receiver.body_timeout; 32 KiB/s at least)"
            ) from error
        return bytes(whole)

    async def _write(self, split: SplitRequest, topic: str, said: Sequence[New]) -> None:
        if not split.pieces and not said:
            return
        pieces = [New(topic=topic, key=piece.key, value=piece.value) for piece in split.pieces]
        try:
            await self.log.write([*pieces, *said])
        except LogFull:
            self._overload.full()
            raise
        self._overload.written()

    def _fault(self, error: Exception) -> tuple[ReceiverReply, Result]:
        match error:
            case TooLarge() | RecordTooLarge():
                return too_large(str(error)), "too_large"
            case Undecodable():
                return undecodable(str(error)), "invalid"
            case Behind():
                return refused(str(error), longer=error.delay), "refused"
            case Retryable():
                return refused(str(error)), "refused"
            case _:
                self._log_fault(error)
                return refused("the receiver failed for a moment"), "refused"

    def _count(self, signal: OtlpSignal, transport: Transport, result: Result, items: int) -> None:
        if items:
            self._received(signal.items, transport, result).inc(items)

    def _count_feedback(self, found: FoundFeedback, transport: Transport) -> None:
        for result, items in found.results.items():
            self.families.feedback_received.labels(transport, result).inc(items)

    def _log_fault(self, error: Exception) -> None:
        if self._faults.due():
            _log.error("The receiver failed on a request.", exc_info=error)


def _items(split: SplitRequest | None) -> int:
    """How many items a request that failed held; one where it was not split."""
    return 1 if split is None else split.accepted + split.rejected
