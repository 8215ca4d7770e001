"""Readers of the log for a backend of `forward` that has no socket."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import TooLarge
from collector.base.retry import Backoff
from collector.base.telemetry import Telemetry
from collector.forward.backend import Backend, Backends
from collector.forward.families import ForwardFamilies
from collector.forward.reader import BackendReader, Way
from collector.log.disk.disk_log import DiskLog
from collector.log.memory import MemoryLog
from collector.records.otlp_signals import LOGS, TRACES
from tests.support.counted import counted
from tests.support.otlp import spans_of


@dataclass
class FakeTransport:
    """Answers as set; `limit` is the largest request that it takes."""

    answers: list[Exception | tuple[int, str]] = field(
        default_factory=list[Exception | tuple[int, str]]
    )
    limit: int = 1 << 30
    refuses: tuple[bytes, Exception] | None = None
    """Requests that hold these bytes, and the error."""
    taken: list[bytes] = field(default_factory=list[bytes])
    tries: int = 0
    closed: bool = False

    async def export(self, request: bytes) -> tuple[int, str]:
        self.tries += 1
        if len(request) > self.limit:
            raise TooLarge("RESOURCE_EXHAUSTED: larger than max")
        if self.refuses is not None and self.refuses[0] in request:
            raise self.refuses[1]
        answer = self.answers.pop(0) if self.answers else (0, "")
        if isinstance(answer, Exception):
            raise answer
        self.taken.append(request)
        return answer

    async def close(self) -> None:
        self.closed = True

    def spans(self) -> list[Span]:
        return [
            each
            for request in self.taken
            for each in spans_of(ExportTraceServiceRequest.FromString(request))
        ]

    def records(self) -> list[LogRecord]:
        requests = map(ExportLogsServiceRequest.FromString, self.taken)
        return [
            record
            for request in requests
            for group in request.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]


def forwarded_spans(transport: FakeTransport) -> list[int]:
    """The numbers of the spans (`tests.support.otlp.span`) that the backend has."""
    return [int.from_bytes(each.span_id) for each in transport.spans()]


@dataclass
class ForwardStand:
    """A log and a backend that outlive the readers over them."""

    log: MemoryLog | DiskLog
    spans: FakeTransport = field(default_factory=FakeTransport)
    records: FakeTransport = field(default_factory=FakeTransport)
    telemetry: Telemetry = field(default_factory=Telemetry)

    @asynccontextmanager
    async def reading(
        self,
        reader: Callable[[Way], BackendReader],
        *,
        drains: bool = False,
        is_killed: bool = False,
    ) -> AsyncGenerator[None]:
        """While a reader runs; `is_killed`: it ends without a stop."""
        families, backoff = ForwardFamilies(self.telemetry), Backoff(first=0.001, longest=0.001)
        has_begun, stopping = asyncio.Event(), asyncio.Event()
        way = Way(
            log=self.log,
            backends=Backends(
                Backend(self.spans, TRACES, families=families, backoff=backoff),
                Backend(self.records, LOGS, families=families, backoff=backoff),
            ),
            telemetry=self.telemetry,
            has_begun=has_begun,
            drains=drains,
        )
        run = asyncio.create_task(reader(way).run(stopping))
        try:
            await has_begun.wait()
            yield
        finally:
            if is_killed:
                run.cancel()
            stopping.set()
            await asyncio.wait((run,))
            if not is_killed:
                run.result()

    def count(self, result: str, reason: str | None = None) -> float:
        """Traces of `forward.keep` where there is a reason, else requests."""
        if reason is None:
            return counted(self.telemetry, "forward_requests_total", result=result)
        return counted(self.telemetry, "forward_traces_total", result=result, reason=reason)
