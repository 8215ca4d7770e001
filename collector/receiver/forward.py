"""Every request that was taken, passed on unchanged to the user's own backend (`forward` of the configuration).

    receiver -> queue, bounded in bytes -> senders --not now--> set aside for a while -> the queue's end

It never blocks ingest and never fails it: a request that does not fit, cannot be delivered in time or is refused for
good is dropped and counted with its reason. So is every request that is not delivered within the grace of a stop. One
that is too large for the backend goes as halves, and what was forwarded a moment ago and has come back goes nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, TypeVar, get_args

from google.protobuf.message import Message

from collector.base import watch
from collector.base.clock import Clock
from collector.base.errors import Permanent, Retryable, TooLarge
from collector.base.retry import Backoff
from collector.config.tree import OtlpTarget
from collector.otlp.client import GrpcTransport, HttpTransport, Transport
from collector.otlp.items import halves, keys_of, only
from collector.otlp.signal import TRACE_SERVICE, OtlpSignal
from collector.receiver.families import ReceiverFamilies

KEPT = 60.0
"""Seconds that an item is remembered at least, while there is room."""
ROOM = 1 << 17
"""Items of one generation; there are two, of 8 MiB each at most."""


class Forwarded:
    """The keys of items (`collector/otlp/items.py`), in two generations: the older one is forgotten as a whole."""

    def __init__(self, clock: Clock, *, room: int = ROOM) -> None:
        self._clock = clock
        self._room = room
        self._newer: set[int] = set()
        self._older: set[int] = set()
        self._began = clock()

    def again(self, keys: Sequence[int | None]) -> set[int]:
        """The places of those that were here before; from now on all of them were."""
        age = self._clock() - self._began
        if not 0 <= age < KEPT:
            self._turn()
        if age >= 2 * KEPT:  # the newer ones too are from before the last minute
            self._turn()
        met = {at for at, key in enumerate(keys) if key in self._newer or key in self._older}
        for key in keys:
            if key is not None:
                if len(self._newer) >= self._room:
                    self._turn()
                self._newer.add(key)
        return met

    def _turn(self) -> None:
        self._older, self._newer = self._newer, set()
        self._began = self._clock()


Result: TypeAlias = Literal[
    "forwarded",
    "partial",
    "retried",
    "halved",
    "returned",
    "queue_full",
    "refused",
    "gave_up",
    "stopped",
]
RESULTS: tuple[Result, ...] = get_args(Result)
"""forwarded: taken; partial: taken without some items; retried: one more try; halved: too large, now two requests;
returned: held what was forwarded within the last minute, which is left out; the others are drops, by reason."""
_GOES_ON: tuple[Result, ...] = ("retried", "halved")

QUEUE = 64 << 20
"""Bytes of requests that may wait."""
SENDERS = 4
PATIENCE = 300.0
"""Seconds after which a request that is not taken is given up, counted from its first try."""
LONGEST_PAUSE = 1.0
"""Seconds that a sender rests at most after a failure: a backend that is away gets four tries a second, not more."""
GRACE = 5.0
TIMEOUT = 10.0
_INLINE = 1 << 16
"""Bytes of a request that is read on the event loop; larger ones are read in a thread."""

_T = TypeVar("_T")
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
        ConfigError: `forward.endpoint` is not an endpoint.
    """
    kind = GrpcTransport if settings.protocol == "grpc" else HttpTransport
    headers = {key: value.get_secret_value() for key, value in settings.headers.items()}
    endpoint = settings.endpoint.rstrip("/").removesuffix(TRACE_SERVICE.path)

    def forwarder(signal: OtlpSignal) -> Forwarder:
        transport = kind(
            endpoint, headers, service=signal.service, key="forward.endpoint", timeout=TIMEOUT
        )
        return Forwarder(transport, signal, families=families, clock=clock)

    return {each.items: forwarder(each) for each in signals if each.is_forwarded}


@dataclass(slots=True, eq=False)
class _QueuedRequest:
    """A request in hand."""

    body: bytes
    backoff: Backoff
    first: float | None = None
    """When it was tried first."""


class Forwarder:
    """A queue and its senders. Owned by one event loop."""

    def __init__(
        self,
        transport: Transport,
        signal: OtlpSignal,
        *,
        families: ReceiverFamilies,
        clock: Clock,
        limit: int = QUEUE,
        longest_wait: float = 30.0,
        grace: float = GRACE,
    ) -> None:
        self._transport = transport
        self._kind = signal.request
        self._forwarded = Forwarded(clock)
        self._is_looping = False
        self._clock = clock
        self._limit = limit
        self._longest_wait = longest_wait
        self._grace = grace
        self._requests = families.forward_requests
        self._gauge = families.forward_queue_bytes
        self._waiting: deque[_QueuedRequest] = deque()
        self._aside: dict[_QueuedRequest, asyncio.TimerHandle] = {}
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
            self._waiting.append(_QueuedRequest(request, self._patience()))
            self._hold(len(request))
            self._arrived.set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Send until `stopping` is set; then try what waits once more, for `grace` seconds at most.

        It may be run again after an error: what waits is kept for that, except at a stop.
        """
        try:
            async with asyncio.TaskGroup() as group:
                senders = [
                    group.create_task(self._send(stopping), name=f"forward {number}")
                    for number in range(SENDERS)
                ]
                await watch.until(stopping, senders)
                self._closed = True
                self._bring_back(*self._aside)
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
        """One sender: try the oldest request, then the next."""
        pause = Backoff(longest=min(self._longest_wait, LONGEST_PAUSE))
        while (held := await self._next()) is not None:
            result: Result = "stopped"
            try:
                result = await self._deliver(held)
            finally:
                self._count(result)
                if result not in _GOES_ON:
                    self._hold(-len(held.body))
            if result == "retried":
                await pause.wait(stopping)
            else:
                pause.reset()

    async def _next(self) -> _QueuedRequest | None:
        """The oldest request; None once the queue is empty and closed."""
        while not self._waiting:
            if self._closed:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    async def _deliver(self, held: _QueuedRequest) -> Result:
        if held.first is None:
            held.first = self._clock()
            if not await self._is_news(held):
                return "returned"
        try:
            rejected, words = await self._transport.export(held.body)
        except TooLarge as error:
            return await self._halve(held, error)
        except Permanent as error:
            return self._refused(error)
        except Retryable as error:
            self._say(f"takes nothing now: {error}")
            return self._set_aside(held, held.first, error.after or 0.0)
        self._recovered()
        if rejected:
            _log.warning(
                "The forward backend rejected %d spans or records: %s", rejected, words[:200]
            )
            return "partial"
        return "forwarded"

    async def _is_news(self, held: _QueuedRequest) -> bool:
        """Take out what was forwarded within the last minute; whether anything is left."""
        met = self._forwarded.again(await self._read(held.body, keys_of))
        if not met:
            return True
        if not self._is_looping:
            self._is_looping = True
            _log.warning(
                "What was forwarded comes back to this receiver: forward.endpoint leads to it again, such as through"
                " a Collector. It is not forwarded a second time (spanwise_forward_requests_total, returned);"
                " docs/collector.md."
            )
        rest = await self._read(held.body, partial(only, wanted=lambda at: at not in met))
        if not rest:
            return False
        self._count("returned")
        self._hold(len(rest) - len(held.body))
        held.body = rest
        return True

    async def _halve(self, held: _QueuedRequest, error: TooLarge) -> Result:
        """Put both halves at the queue's head; what is one item is refused for good."""
        two = await self._read(held.body, halves)
        if two is None:
            return self._refused(error)
        self._waiting.extendleft(
            _QueuedRequest(each, self._patience(), held.first) for each in reversed(two)
        )
        self._hold(sum(map(len, two)) - len(held.body))
        self._arrived.set()
        return "halved"

    def _refused(self, error: Permanent) -> Result:
        self._say(f"refused a request and will never take it: {error}")
        return "refused"

    def _set_aside(self, held: _QueuedRequest, first: float, at_least: float) -> Result:
        """Give its place to the next request, until its wait is over."""
        if self._closed:
            return "stopped"
        if self._clock() - first >= PATIENCE:
            return "gave_up"
        wait = min(max(held.backoff.next(), at_least), PATIENCE)
        loop = asyncio.get_running_loop()
        self._aside[held] = loop.call_later(wait, self._bring_back, held)
        return "retried"

    def _bring_back(self, *held: _QueuedRequest) -> None:
        for each in held:
            self._aside.pop(each).cancel()
            self._waiting.append(each)
        self._arrived.set()

    async def _read(self, request: bytes, read: Callable[[bytes, type[Message]], _T]) -> _T:
        if len(request) <= _INLINE:
            return read(request, self._kind)
        return await asyncio.to_thread(read, request, self._kind)

    def _patience(self) -> Backoff:
        return Backoff(longest=self._longest_wait)

    def _say(self, words: str) -> None:
        if not self._failing:
            self._failing = True
            _log.warning("The forward backend %s", words[:300])

    def _recovered(self) -> None:
        if self._failing and not self._aside:
            self._failing = False
            _log.info("The forward backend takes requests again.")

    def _drop_all(self) -> None:
        self._bring_back(*self._aside)
        while self._waiting:
            self._hold(-len(self._waiting.popleft().body))
            self._count("stopped")

    def _hold(self, size: int) -> None:
        """Requests that are being sent count as well: they are in memory until they are delivered or dropped."""
        self._bytes += size
        self._gauge.inc(size)

    def _count(self, result: Result) -> None:
        self._requests.labels(result).inc()
