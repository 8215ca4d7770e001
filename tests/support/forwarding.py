"""A backend of `forward` without a socket, and what it has."""

from dataclasses import dataclass, field

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import TooLarge
from tests.support.received_log import spans_of


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
