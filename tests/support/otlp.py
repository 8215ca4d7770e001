"""Small OTLP requests, the ids in them, and a raw client of OTLP over HTTP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from google.protobuf.json_format import Parse
from google.rpc.status_pb2 import Status
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


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    """All spans of a request."""
    return [
        span
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def body(*spans: Span) -> bytes:
    """The serialised request."""
    return request(*spans).SerializeToString()


def length(data: bytes) -> bytes:
    """The length prefix of a field: its size as a varint."""
    out, size = bytearray(), len(data)
    while size >= 128:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes((*out, size))


PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
ID = "0af7651916cd43dd8448eb211c80319c"


async def post(
    url: str, content: bytes | AsyncIterator[bytes], headers: dict[str, str] | None = None
) -> httpx.Response:
    """Send a body; protobuf unless said otherwise."""
    async with httpx.AsyncClient(timeout=20, verify=False) as client:  # no certificates to be read
        return await client.post(
            url, content=content, headers=PROTOBUF if headers is None else headers
        )


def head(*more: str) -> bytes:
    """The head of an export in protobuf, by hand."""
    lines = ("POST /v1/traces HTTP/1.1", "host: localhost", "content-type: application/x-protobuf")
    return "\r\n".join((*lines, *more, "", "")).encode()


def one_span(**fields: Any) -> bytes:
    """OTLP/JSON of one span."""
    plain = {"traceId": ID, "spanId": "b7ad6b7169203331", "name": "step", **fields}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [plain]}]}]}).encode()


def rejected(reply: httpx.Response) -> int:
    """How many spans a request in JSON that was taken lost."""
    assert reply.status_code == 200
    return int(reply.json().get("partialSuccess", {}).get("rejectedSpans", 0))


def status_of(reply: httpx.Response) -> Status:
    """The google.rpc.Status in the encoding that the reply names."""
    if reply.headers["content-type"] == JSON["content-type"]:
        return Parse(reply.text, Status())
    assert reply.headers["content-type"] == PROTOBUF["content-type"]
    return Status.FromString(reply.content)
