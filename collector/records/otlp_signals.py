"""The OTLP signals that Spanwise takes: which service, which split, which topic.

A new signal is a file beside this one that declares its `OtlpSignal`, and a line in `OTLP_SIGNALS`. The receiver then
serves it over gRPC and HTTP, and `spanwise evaluate` reads its recordings.
"""

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from collector.log.port import SPANS
from collector.otlp.signal import (
    LOGS_SERVICE,
    METRICS_SERVICE,
    TRACE_SERVICE,
    DroppedSignal,
    OtlpSignal,
)
from collector.otlp.split_logs import joined_logs, joined_traces, split_logs, split_traces


def _response(rejected: int, message: str) -> ExportTraceServiceResponse:
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
    split=split_traces,
    split_joined=joined_traces,
    topic=SPANS,
    recordings=(".otlp", ".otlp.gz", ".json", ".jsonl"),
    is_forwarded=True,
)


def _logs_response(rejected: int, message: str) -> ExportLogsServiceResponse:
    response = ExportLogsServiceResponse()
    if rejected:
        response.partial_success.rejected_log_records = rejected
        response.partial_success.error_message = message
    return response


LOGS = OtlpSignal(
    items="log_records",
    service=LOGS_SERVICE,
    request=ExportLogsServiceRequest,
    response=_logs_response,
    split=split_logs,
    split_joined=joined_logs,
    topic=SPANS,
    large=16 << 10,  # every record is decoded
    drops=True,
    is_forwarded=True,
    recordings=(".logs.otlp", ".logs.otlp.gz", ".logs.otlp.json", ".logs.otlp.jsonl"),
)

OTLP_SIGNALS: tuple[OtlpSignal, ...] = (TRACES, LOGS)

METRICS = DroppedSignal(
    name="metrics", service=METRICS_SERVICE, response=ExportMetricsServiceResponse
)

DROPPED_SIGNALS: tuple[DroppedSignal, ...] = (METRICS,)
"""What an exporter setting for the whole process sends along: errors would only alarm its users."""
