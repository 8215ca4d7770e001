"""OTLP trace backends on loopback, gRPC and HTTP, that keep what they get and refuse on demand."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.support.certificates import Pair
from tests.support.otlp_server import Export, OtlpServer, over_grpc, over_http
from tests.support.receiving import METHOD


@dataclass
class Backend(OtlpServer):
    requests: list[bytes] = field(default_factory=list[bytes])
    rejected: tuple[int, str] = (0, "")
    """Of each request, how many spans are rejected, and why."""

    def take(self, body: bytes) -> bytes:
        self.requests.append(body)
        rejected, why = self.rejected
        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
            response.partial_success.error_message = why
        return response.SerializeToString()


def grpc_backend(
    port: int = 0, *, largest: int = -1, export: Export | None = None, tls: Pair | None = None
) -> AbstractAsyncContextManager[Backend]:
    return over_grpc(Backend(), METHOD, port=port, largest=largest, export=export, tls=tls)


def http_backend(port: int = 0, *, tls: Pair | None = None) -> AbstractAsyncContextManager[Backend]:
    return over_http(Backend(), "/v1/traces", port=port, tls=tls)
