"""The OTLP signals that Spanwise takes: which service, which split, which topic.

A new signal is a file beside this one that declares its `OtlpSignal`, and a line in `OTLP_SIGNALS`. The receiver then
serves it over gRPC and HTTP, and `spanwise evaluate` reads its recordings.
"""

from __future__ import annotations

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collector.log.port import SPANS
from collector.otlp.signal import TRACE_SERVICE, OtlpSignal
from collector.otlp.split import split_by_trace


def _response(rejected: int, message: str) -> ExportTraceServiceResponse:
    """`partial_success` is unset on full success."""
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = message
    return response


TRACES = OtlpSignal(
    items="spans",
    service=TRACE_SERVICE,
    request=ExportTraceServiceRequest,
    response=_response,
    split=split_by_trace,
    topic=SPANS,
    recordings=(".otlp", ".otlp.gz", ".json", ".jsonl"),
    is_forwarded=True,
)

OTLP_SIGNALS: tuple[OtlpSignal, ...] = (TRACES,)
