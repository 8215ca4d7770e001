"""The one path of both transports: admit, inflate, cut, write to the log, answer.

OK is said only after the log has the spans.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Literal, TypeAlias

from collector.clock import Clock
from collector.errors import RecordTooLarge, Retryable, Undecodable
from collector.log.port import SPANS, Log, New
from collector.otlp.split import Cut, cut
from collector.receiver.admission import Admission, Ticket
from collector.receiver.answers import (
    Answer,
    refused,
    taken,
    too_large,
    unauthenticated,
    undecodable,
)
from collector.receiver.errors import SlowSender, TooLarge
from collector.telemetry import Telemetry

Transport: TypeAlias = Literal["grpc", "http"]
Result: TypeAlias = Literal["accepted", "refused", "invalid", "too_large", "unauthenticated"]
Decode: TypeAlias = Callable[[bytes, int], bytes]
"""Body as it came and limit to the bytes of a request. Raises TooLarge, Undecodable."""
Forward: TypeAlias = Callable[[bytes], None]

IN_FLIGHT = 4
"""Times `max_request`: how many bytes may be in memory at once."""
BODY_TIMEOUT = 60.0
_COMPLAIN_EVERY = 60.0

_log = logging.getLogger(__name__)


class Intake:
    """Takes requests in. Owned by one event loop."""

    def __init__(
        self,
        *,
        log: Log,
        max_request: int,
        max_span: int,
        telemetry: Telemetry,
        clock: Clock,
        forward: Forward | None = None,
        body_timeout: float = BODY_TIMEOUT,
        strict: bool = True,
    ) -> None:
        self._log = log
        self._max_request = max_request
        self._max_span = max_span
        self._telemetry = telemetry
        self._clock = clock
        self._forward = forward
        self._body_timeout = body_timeout
        self._strict = strict
        # `labels` validates and locks; these few children are looked up for every request.
        self._requests = cache(telemetry.requests.labels)
        self._spans = cache(telemetry.spans_received.labels)
        self._admission = Admission(limit=IN_FLIGHT * max_request, gauge=telemetry.in_flight_bytes)
        self._stopping = False
        self._complained = float("-inf")

    @property
    def stopping(self) -> bool:
        """Whether new requests are refused."""
        return self._stopping

    def stop_accepting(self) -> None:
        """Refuse every request from now on; those that were admitted finish."""
        self._stopping = True

    def deny(self, transport: Transport) -> Answer:
        """Say that the token is missing or wrong; how many spans that cost nobody knows."""
        self._count(transport, "unauthenticated", 1)
        answer = unauthenticated()
        self._telemetry.requests.labels(transport, answer.code.name).inc()
        return answer

    async def take(
        self, body: bytes | AsyncIterator[bytes], *, transport: Transport, decode: Decode
    ) -> Answer:
        """Take one request in. Raises nothing: own faults are answered as UNAVAILABLE."""
        answer = await self._take(body, transport, decode)
        self._requests(transport, answer.code.name).inc()
        return answer

    async def _take(
        self, body: bytes | AsyncIterator[bytes], transport: Transport, decode: Decode
    ) -> Answer:
        found: Cut | None = None
        try:
            with self._admission.ticket() as ticket:
                request = await self._decoded(body, decode, ticket)
                found = cut(request, max_span=self._max_span, strict=self._strict)
                await self._keep(found)
        except Exception as error:  # noqa: BLE001 - whatever is not handled would reach the sender as UNKNOWN: data lost
            answer, result = self._fault(error)
            self._count(transport, result, _spans(found))
            return answer
        self._settle(found, transport)
        self._pass_on(request)
        return taken(found)

    async def _decoded(
        self, body: bytes | AsyncIterator[bytes], decode: Decode, ticket: Ticket
    ) -> bytes:
        if self._stopping:
            raise Retryable("the receiver is stopping")
        if isinstance(body, bytes):
            ticket.grow(len(body))
        else:
            body = await self._read(body, ticket)
        request = decode(body, self._max_request)
        ticket.grow(len(request))
        return request

    async def _read(self, chunks: AsyncIterator[bytes], ticket: Ticket) -> bytes:
        whole = bytearray()
        try:
            async with asyncio.timeout(self._body_timeout):
                async for chunk in chunks:
                    whole += chunk
                    if len(whole) > self._max_request:
                        raise TooLarge(f"the request is larger than {self._max_request} bytes")
                    ticket.grow(len(whole))
        except TimeoutError as error:
            raise SlowSender("the body did not arrive in time") from error
        return bytes(whole)

    async def _keep(self, found: Cut) -> None:
        if found.pieces:
            await self._log.write(
                [New(topic=SPANS, key=piece.trace_id, value=piece.value) for piece in found.pieces]
            )

    def _fault(self, error: Exception) -> tuple[Answer, Result]:
        match error:
            case TooLarge() | RecordTooLarge():
                return too_large(str(error)), "too_large"
            case Undecodable():
                return undecodable(str(error)), "invalid"
            case Retryable():
                return refused(str(error)), "refused"
            case _:
                self._complain(error)
                return refused("the receiver failed for a moment"), "refused"

    def _settle(self, found: Cut, transport: Transport) -> None:
        self._count(transport, "accepted", found.accepted)
        self._count(transport, "invalid", found.invalid)
        self._count(transport, "too_large", found.too_large)

    def _count(self, transport: Transport, result: Result, spans: int) -> None:
        if spans:
            self._spans(transport, result).inc(spans)

    def _pass_on(self, request: bytes) -> None:
        if self._forward is None or not request:
            return
        try:
            self._forward(request)
        except Exception as error:  # noqa: BLE001 - the spans are taken: nothing behind them may change the answer
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Log an own fault, at most once a minute."""
        now = self._clock()
        if 0 <= now - self._complained < _COMPLAIN_EVERY:
            return
        self._complained = now
        _log.error("the receiver failed on a request", exc_info=error)


def _spans(found: Cut | None) -> int:
    """How many spans a request that failed held; 1 when nobody knows."""
    return 1 if found is None else found.accepted + found.rejected
