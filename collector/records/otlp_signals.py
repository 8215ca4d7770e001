"""The OTLP signals that Spanwise takes: which service, which split, which topic.

A new signal is a file beside this one that declares its `OtlpSignal`, and a line in `OTLP_SIGNALS`. The receiver then
serves it over gRPC and HTTP, and `spanwise evaluate` reads its recordings.
"""

from collections.abc import Callable
from functools import partial

from google.protobuf.message import Message
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
from collector.otlp.split_logs import split_logs, split_traces


def _response(kind: Callable[..., Message], field: str, rejected: int, message: str) -> Message:
    """A response with a partial success; `field`: where it says how many items were rejected."""
    return kind(partial_success={field: rejected, "error_message": message} if rejected else None)


TRACES = OtlpSignal(
    items="spans",
    service=TRACE_SERVICE,
    request=ExportTraceServiceRequest,
    response=partial(_response, ExportTraceServiceResponse, "rejected_spans"),
    split=split_traces,
    topic=SPANS,
    recordings=(".otlp", ".otlp.gz", ".json", ".jsonl"),
)


LOGS = OtlpSignal(
    items="log_records",
    service=LOGS_SERVICE,
    request=ExportLogsServiceRequest,
    response=partial(_response, ExportLogsServiceResponse, "rejected_log_records"),
    split=split_logs,
    topic=SPANS,
    large=16 << 10,  # every record is decoded
    drops=True,
    recordings=(".logs.otlp", ".logs.otlp.gz", ".logs.otlp.json", ".logs.otlp.jsonl"),
)

OTLP_SIGNALS: tuple[OtlpSignal, ...] = (TRACES, LOGS)

METRICS = DroppedSignal(
    name="metrics", service=METRICS_SERVICE, response=ExportMetricsServiceResponse
)

DROPPED_SIGNALS: tuple[DroppedSignal, ...] = (METRICS,)
"""What an exporter setting for the whole process sends along: errors would only alarm its users."""
