"""The user's own backend (`forward` of the configuration), and how one request gets there.

request -> taken
-> not now: once more, for as long as it takes
-> it fails: once more, then by traces; a trace that fails goes last, and is lost once the others pass all the time
-> too large: as halves; refused: without the trace that it does not take, which is lost and counted
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from google.protobuf.message import Message

from collector.base.clock import Clock
from collector.base.errors import Permanent, RequestFailed, Retryable, TooLarge
from collector.base.retry import Backoff, Seldom
from collector.base.telemetry import Telemetry
from collector.config.sinks import OtlpTarget
from collector.forward.families import RESULTS, ForwardFamilies, Result
from collector.otlp.client import Transport, transport_to
from collector.otlp.items import halves, keys_of, traces_of
from collector.otlp.signal import TRACE_SERVICE, OtlpSignal
from collector.otlp.span_head import SpanHeads
from collector.records.otlp_signals import LOGS, TRACES

MOST = 4 << 20  # bytes of one request: what a stock gRPC server takes, such as a Collector's
TIMEOUT = 10.0
GRACE = 5.0
"""Seconds that a stop leaves to the request in hand."""
LONGEST_PAUSE = 5.0  # seconds between two tries at most: a backend that is back gets the first request within them
TRIES = 3  # of a request that fails, in a row: one may be chance
HELD_TRIES = 10
"""Of a trace that fails while others pass, PAUSE apart: where one request in two fails, it loses one in a thousand."""
PAUSE = 5.0  # seconds
MOST_HELD = 16 << 20
"""Bytes of traces that wait for others to pass; with as many nothing more is read: it is the backend that fails."""
INLINE = 1 << 19
"""Bytes of a request that is read on the event loop, in a millisecond at most; larger ones are read in a thread."""

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Part(NamedTuple):
    """A request, and how many spans or records it holds."""

    body: bytes
    items: int


@dataclass
class _FailingTrace:
    """A trace that fails, while it is not known whether others do."""

    request: Part
    traces: frozenset[bytes]
    next_try: float
    passed: int  # requests that the backend had taken when it was tried last
    tries: int = 0  # with others taken in between


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
        now: Clock = time.monotonic,
    ) -> None:
        self._transport = transport
        self._counts_spans = signal.service is TRACE_SERVICE
        self._kind = SpanHeads if self._counts_spans else signal.request
        self._requests = families.requests
        self._spans = families.spans
        self._backoff = backoff or Backoff(longest=LONGEST_PAUSE)
        self._failing = False
        self._now = now
        self._held: list[_FailingTrace] = []
        self._passed = 0
        self._losses, self._rejections = Seldom(now), Seldom(now)
        self._lost: dict[Result, set[bytes]] = {}
        for result in RESULTS:
            self._requests.labels(result)
        for result in ("sent", "lost"):
            self._spans.labels(result)

    async def deliver(self, requests: Sequence[Part], stopping: asyncio.Event) -> dict[Result, int]:
        """Bring these requests there, joined or cut as they fit; returns how many traces are lost, by reason.

        What it holds then is tried again with the next call. Raises StopCameFirst: `stopping` is set, and the
        backend does not take them now.
        """
        self._lost.clear()
        for request in _joined(requests):
            await self._bring(request, stopping)
        await self._try_held(stopping)
        while sum(len(each.request.body) for each in self._held) > MOST_HELD:
            await self._pause(stopping)
            await self._try_held(stopping)
        return {result: len(traces) for result, traces in self._lost.items()}

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    async def _bring(self, request: Part, stopping: asyncio.Event) -> None:
        await self._try_held(stopping)
        error: Exception | None = None
        is_large = len(request.body) > MOST
        two = await self._cut(request, of_traces=False) if is_large else None
        if two is None and not await self._is_behind_held(request):
            try:
                await self._send(request, stopping)
            except (Permanent, RequestFailed) as raised:
                error = raised
            else:
                return
        if two is None:
            two = await self._cut(request, of_traces=not isinstance(error, TooLarge))
            if two is not None and isinstance(error, Permanent):
                self.count("halved")
        if two is not None:
            for each in two:
                await self._bring(each, stopping)
        elif isinstance(error, Permanent):
            await self._lose(request, error)
        else:
            await self._hold(request, error)

    async def _hold(self, request: Part, error: Exception | None) -> None:
        if not self._held:
            _log.warning(
                "The forward backend fails; what it failed on is tried again, with others in between: %s",
                str(error)[:300],
            )
        traces = await self.read(request.body, traces_of)
        self._held.append(_FailingTrace(request, traces, self._now() + PAUSE, self._passed))

    async def _is_behind_held(self, request: Part) -> bool:
        """Whether it has spans of a trace that is held: those go behind it."""
        if not self._held:
            return False
        traces = await self.read(request.body, traces_of)
        return any(traces & each.traces for each in self._held)

    async def _try_held(self, stopping: asyncio.Event) -> None:
        """Try those that are held and due, each trace's in order."""
        ahead = set[bytes]()
        for each in [*self._held]:
            if each.next_try > self._now() or each.traces & ahead:
                ahead |= each.traces
                continue
            each.tries += self._passed > each.passed
            each.passed, each.next_try = self._passed, self._now() + PAUSE
            try:
                await self._send(each.request, stopping, tries=1)
            except RequestFailed as error:
                if each.tries < HELD_TRIES:
                    ahead |= each.traces
                    continue
                await self._lose(each.request, error)
            except Permanent as error:
                await self._lose(each.request, error)
            self._held.remove(each)

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

    async def _send(self, request: Part, stopping: asyncio.Event, tries: int = TRIES) -> None:
        """Until it is taken. Raises Permanent: it never will be. Raises RequestFailed: it failed so often."""
        while True:
            try:
                rejected, words = await self._export(request.body, stopping)
                break
            except Retryable as error:
                self.count("retried")
                if not self._failing and not isinstance(error, RequestFailed):
                    self._failing = True
                    _log.warning(
                        "The forward backend takes nothing now; what it gets waits in the log: %s",
                        str(error)[:300],
                    )
                tries -= isinstance(error, RequestFailed) and error.after is None
                if tries <= 0:
                    raise
                await self._pause(stopping, at_least=error.after or 0.0)
        self._backoff.reset()
        self._passed += 1
        for each in self._held:
            if not each.tries:  # the backend is back, perhaps: each trace's spans stay in order
                each.next_try = 0.0
        if self._failing:
            self._failing = False
            _log.info("The forward backend takes requests again.")
        if rejected and (times := self._rejections.due()):
            _log.warning(
                "The forward backend rejected %d spans or records, of %d such requests the newest: %s",
                rejected,
                times,
                words[:200],
            )
        self.count("partial" if rejected else "forwarded")
        self._count_spans(request, min(rejected, request.items))

    async def _pause(self, stopping: asyncio.Event, *, at_least: float = 0.0) -> None:
        await self._backoff.wait(stopping, at_least=at_least)
        if stopping.is_set():
            raise StopCameFirst

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

    async def _lose(self, request: Part, error: Exception) -> None:
        result: Result = "failed" if isinstance(error, RequestFailed) else "refused"
        why = "refused" if result == "refused" else f"failed {HELD_TRIES} times on"
        traces = await self.read(request.body, traces_of)
        if times := self._losses.due():
            ids = " ".join(sorted(each.hex() for each in traces)) or "without an id"
            _log.warning(
                "The forward backend %s trace %s, which is lost, of %d such requests the newest: %s",
                why,
                ids,
                times,
                str(error)[:300],
            )
        self._lost.setdefault(result, set()).update(traces)
        self.count(result)
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

    @property
    def are_holding(self) -> bool:
        """Whether something that was delivered may still have to be read again."""
        return any(each.is_holding for each in self)

    @classmethod
    def configured(cls, settings: OtlpTarget, telemetry: Telemetry) -> Backends:
        """The backend under `forward`. Raises ConfigError: `forward.endpoint` is not an endpoint."""

        def backend(of: OtlpSignal) -> Backend:
            transport = transport_to(settings, of.service, section="forward", timeout=TIMEOUT)
            return Backend(transport, of, families=ForwardFamilies(telemetry))

        return cls(backend(TRACES), backend(LOGS))
