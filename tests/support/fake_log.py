"""A list that can be written to like the log: what the receiver's tests look into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.log.port import Commit, New, Position, Reader, Record


class FakeLog:
    """Holds what was written.

    Set `fails` to raise it always, `failures` to raise each once, `gate` to hold writers back until the event is set.
    """

    def __init__(self) -> None:
        self.written: list[New] = []
        self.fails: Exception | None = None
        self.failures: list[Exception] = []
        self.gate: asyncio.Event | None = None
        self.arrivals: list[float] = []
        """When `write` was called, by the loop's clock."""
        self.waiting = 0

    async def write(
        self, records: Sequence[New], commits: Sequence[Commit] = ()
    ) -> Sequence[Position]:
        del commits
        self.arrivals.append(asyncio.get_running_loop().time())
        if self.gate is not None:
            self.waiting += 1
            try:
                await self.gate.wait()
            finally:
                self.waiting -= 1
        if self.failures:
            raise self.failures.pop(0)
        if self.fails is not None:
            raise self.fails
        first = len(self.written)
        self.written.extend(records)
        return [Position(record.topic, 0, first + i) for i, record in enumerate(records)]

    def requests(self) -> list[ExportTraceServiceRequest]:
        """Every record, decoded."""
        return [ExportTraceServiceRequest.FromString(value(record)) for record in self.written]

    def spans(self) -> list[Span]:
        """Every span in the log, in order."""
        return [span for request in self.requests() for span in spans_of(request)]

    def read(self, group: str, topic: str, *, linger: float = 0.0) -> Reader:
        raise NotImplementedError

    def replay(self, topic: str, partition: int, since: int | None = None) -> AsyncIterator[Record]:
        raise NotImplementedError

    async def get(self, position: Position) -> Record | None:
        raise NotImplementedError

    def release(self, positions: Iterable[Position]) -> None:
        raise NotImplementedError

    def partitions(self, topic: str) -> int:
        del topic
        return 1

    def begin_shutdown(self) -> None: ...

    async def close(self) -> None:
        """Nothing to let go."""


def value(record: New) -> bytes:
    """The bytes of a record whose value is known when it is written."""
    assert isinstance(record.value, bytes)
    return record.value


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    """All spans of a request."""
    return [
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
