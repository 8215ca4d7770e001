"""Every request that was taken, passed on unchanged to the user's own backend (`forward` of the configuration).

    receiver -> queue, bounded in bytes -> senders, each with its own wait between tries

It never blocks ingest and never fails it: a request that does not fit, cannot be delivered in time or is refused for
good is dropped and counted with its reason. So is every request that is not delivered within the grace of a stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

from collector.base.clock import Clock
from collector.base.errors import Permanent, Retryable
from collector.base.retry import Backoff
from collector.config.tree import OtlpTarget
from collector.otlp.client import GrpcTransport, HttpTransport, Transport
from collector.otlp.signal import TRACE_SERVICE, OtlpSignal
from collector.receiver.families import ReceiverFamilies

Result: TypeAlias = Literal[
    "forwarded", "partial", "retried", "queue_full", "refused", "gave_up", "stopped"
]
RESULTS: tuple[Result, ...] = get_args(Result)
"""forwarded: taken; partial: taken without some items; retried: one more try; the others are drops, by why."""

QUEUE = 64 << 20
"""Bytes of requests that may wait."""
SENDERS = 4
PATIENCE = 300.0
"""Seconds after which a request that is not taken is given up, counted from its first try."""
GRACE = 5.0
TIMEOUT = 10.0

_log = logging.getLogger(__name__)


def forwarders(
    settings: OtlpTarget,
    signals: Iterable[OtlpSignal],
    *,
    families: ReceiverFamilies,
    clock: Clock,
) -> dict[str, Forwarder]:
    """A forwarder to the configured backend for each signal that is forwarded, by `OtlpSignal.items`.

    Raises:
        ConfigError: `forward.endpoint` is no endpoint.
    """
    kind = GrpcTransport if settings.protocol == "grpc" else HttpTransport
    headers = {key: value.get_secret_value() for key, value in settings.headers.items()}
    endpoint = settings.endpoint.rstrip("/").removesuffix(TRACE_SERVICE.path)

    def forwarder(signal: OtlpSignal) -> Forwarder:
        transport = kind(
            endpoint, headers, service=signal.service, key="forward.endpoint", timeout=TIMEOUT
        )
        return Forwarder(transport, families=families, clock=clock)

    return {each.items: forwarder(each) for each in signals if each.is_forwarded}


class Forwarder:
    """A queue and its senders. Owned by one event loop."""

    def __init__(
        self,
        transport: Transport,
        *,
        families: ReceiverFamilies,
        clock: Clock,
        limit: int = QUEUE,
        longest_wait: float = 30.0,
        grace: float = GRACE,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._limit = limit
        self._longest_wait = longest_wait
        self._grace = grace
        self._requests = families.forward_requests
        self._gauge = families.forward_queue_bytes
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._closed = False
        self._failing = False
        for result in RESULTS:
            self._requests.labels(result)

    def __call__(self, request: bytes) -> None:
        """Take a request in, or drop it when there is no room. Returns at once, raises nothing."""
        if self._closed:
            self._count("stopped")
        elif self._bytes + len(request) > self._limit:
            self._count("queue_full")
        else:
            self._waiting.append(request)
            self._hold(len(request))
            self._arrived.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set; then try what waits once more, for `grace` seconds at most.

        It may be run again after an error: what waits is kept for that, except at a stop.
        """
        try:
            async with asyncio.TaskGroup() as group:
                senders = [group.create_task(self._send(stopping)) for _ in range(SENDERS)]
                await stopping.wait()
                self._closed = True
                self._arrived.set()
                await asyncio.wait(senders, timeout=self._grace)
                for sender in senders:
                    sender.cancel()
        except Exception:
            if stopping.is_set():
                await self._close()
            raise
        except asyncio.CancelledError:
            await self._close()
            raise
        await self._close()

    async def _close(self) -> None:
        self._closed = True
        self._drop_all()
        await self._transport.close()

    async def _send(self, stopping: asyncio.Event) -> None:
        """One sender: deliver or drop the oldest request, then the next."""
        while (request := await self._next()) is not None:
            result: Result = "stopped"
            try:
                result = await self._deliver(request, stopping)
            finally:
                self._count(result)
                self._hold(-len(request))

    async def _next(self) -> bytes | None:
        """The oldest request; None once the queue is empty and closed."""
        while not self._waiting:
            if self._closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    async def _deliver(self, request: bytes, stopping: asyncio.Event) -> Result:
        backoff = Backoff(longest=self._longest_wait)
        first = self._clock()
        while True:
            try:
                rejected, words = await self._transport.export(request)
            except Permanent as error:
                self._say(f"refused a request and will never take it: {error}")
                return "refused"
            except Retryable as error:
                self._say(f"takes nothing now: {error}")
                if stopping.is_set():
                    return "stopped"
                if self._clock() - first >= PATIENCE:
                    return "gave_up"
                self._count("retried")
                await backoff.wait(stopping)
                continue
            self._recovered()
            if rejected:
                _log.warning(
                    "The forward backend rejected %d spans or records: %s", rejected, words[:200]
                )
                return "partial"
            return "forwarded"

    def _say(self, words: str) -> None:
        """Log a change of state, not every failure."""
        if not self._failing:
            self._failing = True
            _log.warning("The forward backend %s", words[:300])

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            _log.info("The forward backend takes requests again.")

    def _drop_all(self) -> None:
        while self._waiting:
            self._hold(-len(self._waiting.popleft()))
            self._count("stopped")

    def _hold(self, size: int) -> None:
        """Requests that are being sent count as well: they are in memory until they are delivered or dropped."""
        self._bytes += size
        self._gauge.inc(size)

    def _count(self, result: Result) -> None:
        self._requests.labels(result).inc()
