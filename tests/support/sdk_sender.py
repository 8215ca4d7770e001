"""Agents that send with the exporters of the OpenTelemetry SDK, which try again as they see fit and then give up."""

import threading
import time
from collections.abc import Sequence
from typing import Literal

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from tests.support.hostile import post


class SdkSender(threading.Thread):
    """Exports requests one after the other, at a steady pace, over one exporter. A batch that it gives up is lost."""

    def __init__(
        self,
        requests: Sequence[bytes],
        protocol: Literal["grpc", "http"],
        target: str,
        *,
        pause: float,
    ) -> None:
        super().__init__(daemon=True)
        self._requests = requests
        self._pause = pause
        self._exporter: SpanExporter = (
            GrpcSpanExporter(endpoint=target, insecure=True)
            if protocol == "grpc"
            else HttpSpanExporter(endpoint=f"http://{target}/v1/traces")
        )
        self.acknowledged: list[bytes] = []
        self.lost: list[bytes] = []
        self.longest = 0.0
        """Seconds of the export that took longest, its repeats included."""
        self.hurry = threading.Event()
        """Set: the rest is sent without pauses."""
        self.give_up = threading.Event()

    def run(self) -> None:
        """Until all are sent."""
        for request in self._requests:
            self.hurry.wait(self._pause)
            if self.give_up.is_set():
                break
            began = time.monotonic()
            result = self._exporter.export(sdk_spans(request))
            self.longest = max(self.longest, time.monotonic() - began)
            said = self.acknowledged if result is SpanExportResult.SUCCESS else self.lost
            said.append(request)
        self._exporter.shutdown()


class ShortLivedSenders(threading.Thread):
    """Agents that live for one request: each comes over a new connection, and none tries again."""

    def __init__(self, target: str) -> None:
        super().__init__(daemon=True)
        self._url = f"http://{target}/v1/traces"
        self.served = 0
        self.unserved: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        """Until `over`. The requests hold no span: whether they are taken is what counts."""
        while not self.over.wait(0.025):
            status, said = post(self._url, b"", timeout=30)
            if status == 200:
                self.served += 1
            else:
                self.unserved.append(f"HTTP {status} {said!r}")


def sdk_spans(request: bytes) -> list[ReadableSpan]:
    """The spans of a request as the SDK holds them; attributes are texts and whole numbers."""
    return [
        _readable(span, resource)
        for resource in ExportTraceServiceRequest.FromString(request).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _readable(span: Span, resource: ResourceSpans) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_span_id) if span.parent_span_id else None,
        resource=Resource(_plain(resource.resource.attributes)),
        attributes=_plain(span.attributes),
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode(span.status.code), span.status.message or None),
        start_time=span.start_time_unix_nano,
        end_time=span.end_time_unix_nano,
    )


def _context(trace_id: bytes, span_id: bytes) -> SpanContext:
    return SpanContext(
        int.from_bytes(trace_id),
        int.from_bytes(span_id),
        is_remote=False,
        trace_flags=TraceFlags(1),
    )


def _plain(attributes: Sequence[KeyValue]) -> dict[str, str | int]:
    return {
        each.key: each.value.int_value
        if each.value.HasField("int_value")
        else each.value.string_value
        for each in attributes
    }
