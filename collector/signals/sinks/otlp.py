"""Signals as OTLP logs to any OpenTelemetry backend: events `gen_ai.evaluation.result`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, Self

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.config.tree import Config, OtlpTarget
from collector.errors import Permanent, Undecodable
from collector.log.port import Position, Record
from collector.otlp.client import GrpcTransport, HttpTransport, Transport
from collector.otlp.signal import LOGS_SERVICE
from collector.records.signal import Signal
from collector.records.signal_codec import decode_signal
from collector.signals.sinks.otlp_event import event, request
from collector.signals.sinks.port import Refused

MAX_REQUEST = 1 << 20
"""Bytes of one request: well below the 4 MiB that a stock Collector takes."""


class _Event(NamedTuple):
    position: Position
    signal: Signal
    record: LogRecord


class OtlpSink:
    """Exports each batch in requests of bounded size, in order; the log repeats what was not taken."""

    name: ClassVar[str] = "otlp"

    def __init__(self, settings: OtlpTarget, *, version: str = "", timeout: float = 10.0) -> None:
        """Export to `settings.endpoint`; `version` is Spanwise's, for the instrumentation scope.

        Raises:
            ConfigError: the endpoint is not one.
        """
        kind = GrpcTransport if settings.protocol == "grpc" else HttpTransport
        headers = {key: value.get_secret_value() for key, value in settings.headers.items()}
        self._transport: Transport = kind(
            settings.endpoint,
            headers,
            service=LOGS_SERVICE,
            key="sinks.otlp.endpoint",
            timeout=timeout,
        )
        self._version = version

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        """See `SinkKind`."""
        section = config.sinks.otlp
        return None if section is None else cls(section)

    async def deliver(self, records: Sequence[Record]) -> None:
        """See `Sink`. Refused is what the other side calls invalid, and what is no signal."""
        events, refused = _events(records)
        for piece in _pieces(events):
            refused |= await self._export(piece)
        if refused:
            raise Refused(refused)

    async def close(self, deadline: float) -> None:
        """See `Sink`."""
        async with asyncio.timeout(deadline):
            await self._transport.close()

    async def _export(self, events: Sequence[_Event]) -> dict[Position, str]:
        """Send; a request called invalid is halved until the bad event stands alone."""
        body = request([(each.signal, each.record) for each in events], self._version)
        try:
            rejected, reason = await self._transport.export(body.SerializeToString())
        except Permanent as error:
            if len(events) == 1:
                return {events[0].position: str(error)}
            middle = len(events) // 2
            return await self._export(events[:middle]) | await self._export(events[middle:])
        # The answer only says how many: their number is exact, which ones they were is not known.
        return {each.position: f"rejected: {reason}" for each in events[:rejected]}


def _events(records: Sequence[Record]) -> tuple[list[_Event], dict[Position, str]]:
    events: list[_Event] = []
    refused: dict[Position, str] = {}
    for each in records:
        try:
            signal = decode_signal(each.value)
            events.append(_Event(each.position, signal, event(signal, observed=each.time)))
        except Undecodable as error:
            refused[each.position] = str(error)
    return events, refused


def _pieces(events: Sequence[_Event]) -> Iterator[Sequence[_Event]]:
    piece: list[_Event] = []
    size = 0
    for each in events:
        more = each.record.ByteSize()
        if piece and size + more > MAX_REQUEST:
            yield piece
            piece, size = [], 0
        piece.append(each)
        size += more
    if piece:
        yield piece
