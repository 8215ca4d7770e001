"""Small OTLP requests, and the ids in them."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span


def trace_id(number: int) -> bytes:
    """The trace with this number."""
    return number.to_bytes(16, "big")


def span(trace: int | bytes = 1, number: int | bytes = 1, *, text: str = "") -> Span:
    """One span; ids given as bytes are taken as they are."""
    made = Span(
        trace_id=trace if isinstance(trace, bytes) else trace_id(trace),
        span_id=number if isinstance(number, bytes) else number.to_bytes(8, "big"),
        name="step",
        start_time_unix_nano=1_760_000_000_000_000_000,
        end_time_unix_nano=1_760_000_001_000_000_000,
    )
    if text:
        made.attributes.add(key="input.value").value.string_value = text
    return made


def request(*spans: Span, service: str = "bot") -> ExportTraceServiceRequest:
    """All spans under one resource and one scope."""
    made = ExportTraceServiceRequest()
    under(made.resource_spans.add(), *spans, service=service)
    return made


def under(resource: ResourceSpans, *spans: Span, service: str) -> None:
    """Put spans under a resource."""
    resource.resource.attributes.add(key="service.name").value.string_value = service
    scope = resource.scope_spans.add()
    scope.scope.name = "tests"
    scope.spans.extend(spans)


def body(*spans: Span) -> bytes:
    """The serialised request."""
    return request(*spans).SerializeToString()


def length(data: bytes) -> bytes:
    """The length prefix of a field: its size as a varint."""
    size = len(data)
    return bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
