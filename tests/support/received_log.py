"""The log behind a receiver, with its records decoded."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.faulty_log import FaultyLog
from tests.support.otlp import spans_of


class ReceivedLog(FaultyLog):
    """Holds what a receiver has taken."""

    def requests(self) -> list[ExportTraceServiceRequest]:
        """Every record, decoded."""
        return [ExportTraceServiceRequest.FromString(record.value) for record in self.written]

    def spans(self) -> list[Span]:
        """Every span in the log, in order."""
        return [span for request in self.requests() for span in spans_of(request)]
