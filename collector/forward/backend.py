"""The user's own backend (`forward` of the configuration), and how one request gets there.

request -> taken
-> not now: once more, for as long as it takes
-> too large: as halves; refused: without the trace that it does not take, which is lost and counted
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from google.protobuf.message import Message

from collector.base.errors import Permanent, Retryable, TooLarge
from collector.base.retry import Backoff
from collector.base.telemetry import Telemetry
from collector.config.tree import OtlpTarget
from collector.forward.families import RESULTS, ForwardFamilies, Result
from collector.otlp.client import GrpcTransport, HttpTransport, Transport
from collector.otlp.items import halves, keys_of
from collector.otlp.signal import TRACE_SERVICE, OtlpSignal
from collector.records.otlp_signals import LOGS, TRACES

MOST = 4 << 20  # bytes of one request: what a stock gRPC server takes, such as a Collector's
TIMEOUT = 10.0
GRACE = 5.0
"""Seconds that a stop leaves to the request in hand."""
LONGEST_PAUSE = 5.0  # seconds between two tries at most: a backend that is back gets the first request within them
INLINE = 1 << 16
"""Bytes of a request that is read on the event loop; larger ones are read in a thread."""

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Part(NamedTuple):
    """A request, and how many spans or records it holds."""

    body: bytes
    items: int


class StopCameFirst(Exception):
    """The service stops before the backend has taken a request."""


class Backend:
    """Takes requests of one signal, in order. Owned by one task."""

    def __init__(
        self,
        transport: Transport,
        signal: OtlpSignal,
        *,
        families: ForwardFamilies,
        backoff: Backoff | None = None,
    ) -> None:
        self._transport = transport
        self._kind = signal.request
        self._counts_spans = signal.service is TRACE_SERVICE
        self._requests = families.requests
        self._spans = families.spans
        self._backoff = backoff or Backoff(longest=LONGEST_PAUSE)
        self._failing = False
        for result in RESULTS:
            self._requests.labels(result)
        for result in ("sent", "lost"):
            self._spans.labels(result)

    @classmethod
    def configured(
        cls, settings: OtlpTarget, signal: OtlpSignal, *, families: ForwardFamilies
    ) -> Backend:
        """The backend under `forward`, for this signal. Raises ConfigError: `forward.endpoint` is not an endpoint."""
        kind = GrpcTransport if settings.protocol == "grpc" else HttpTransport
        transport = kind(
            settings.endpoint.rstrip("/").removesuffix(TRACE_SERVICE.path),
            {key: value.get_secret_value() for key, value in settings.headers.items()},
            service=signal.service,
            key="forward.endpoint",
            timeout=TIMEOUT,
        )
        return cls(transport, signal, families=families)

    async def deliver(self, requests: Sequence[Part], stopping: asyncio.Event) -> int:
        """Bring these requests there, joined or cut as they fit; returns how many were refused for good, in parts.

        Raises StopCameFirst: `stopping` is set, and the backend does not take them now.
        """
        waiting = deque(_joined(requests))
        refused = 0
        while waiting:
            request = waiting.popleft()
            if len(request.body) > MOST and (two := await self._cut(request, of_traces=False)):
                waiting.extendleft(reversed(two))
                continue
            try:
                await self._send(request, stopping)
            except Permanent as error:
                two = await self._cut(request, of_traces=not isinstance(error, TooLarge))
                if two is None:
                    refused += 1
                    self._lose(request, error)
                else:
                    self.count("halved")
                    waiting.extendleft(reversed(two))
        return refused

    async def _cut(self, request: Part, *, of_traces: bool) -> list[Part] | None:
        two = await self.read(request.body, lambda of, kind: halves(of, kind, of_traces=of_traces))
        if two is None:
            return None
        return [Part(each, len(await self.read(each, keys_of))) for each in two]

    async def read(self, request: bytes, read: Callable[[bytes, type[Message]], _T]) -> _T:
        """What `read` makes of a request of this signal, a large one in a thread."""
        if len(request) <= INLINE:
            return read(request, self._kind)
        return await asyncio.to_thread(read, request, self._kind)

    async def close(self) -> None:
        await self._transport.close()

    def count(self, result: Result, count: int = 1) -> None:
        self._requests.labels(result).inc(count)

    async def _send(self, request: Part, stopping: asyncio.Event) -> None:
        """Until it is taken. Raises Permanent: it never will be."""
        while True:
            try:
                rejected, words = await self._export(request.body, stopping)
                break
            except Retryable as error:
                self.count("retried")
                if not self._failing:
                    self._failing = True
                    _log.warning(
                        "The forward backend takes nothing now; what it gets waits in the log: %s",
                        str(error)[:300],
                    )
                await self._backoff.wait(stopping, at_least=error.after or 0.0)
                if stopping.is_set():
                    raise StopCameFirst from error
        self._backoff.reset()
        if self._failing:
            self._failing = False
            _log.info("The forward backend takes requests again.")
        if rejected:
            _log.warning(
                "The forward backend rejected %d spans or records: %s", rejected, words[:200]
            )
        self.count("partial" if rejected else "forwarded")
        self._count_spans(request, min(rejected, request.items))

    async def _export(self, request: bytes, stopping: asyncio.Event) -> tuple[int, str]:
        """A try that a stop ends after GRACE seconds."""
        trying = asyncio.ensure_future(self._transport.export(request))
        stop = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait((trying, stop), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((trying,), timeout=GRACE)
            if not trying.done():
                raise StopCameFirst
            return trying.result()
        finally:
            trying.cancel()
            stop.cancel()

    def _lose(self, request: Part, error: Permanent) -> None:
        _log.warning(
            "The forward backend refused what it will never take, which is lost: %s",
            str(error)[:300],
        )
        self.count("refused")
        self._count_spans(request, request.items)

    def _count_spans(self, request: Part, lost: int) -> None:
        if self._counts_spans:
            self._spans.labels("sent").inc(request.items - lost)
            self._spans.labels("lost").inc(lost)


def _joined(requests: Sequence[Part]) -> list[Part]:
    """The requests one behind the other, at most `MOST` bytes together: that is how protobuf joins messages."""
    groups: list[list[Part]] = []
    size = MOST
    for each in requests:
        size += len(each.body)
        if size > MOST:
            groups.append([])
            size = len(each.body)
        groups[-1].append(each)
    return [
        Part(b"".join(each.body for each in group), sum(each.items for each in group))
        for group in groups
    ]


class Backends(NamedTuple):
    """The same backend, for spans and for log records."""

    spans: Backend
    log_records: Backend

    @classmethod
    def configured(cls, settings: OtlpTarget, telemetry: Telemetry) -> Backends:
        """As `Backend.configured`."""
        families = ForwardFamilies(telemetry)
        return cls(
            *(Backend.configured(settings, each, families=families) for each in (TRACES, LOGS))
        )
