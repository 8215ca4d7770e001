"""OTLP logs servers on loopback, gRPC and HTTP, that keep what they get and refuse on demand."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs

from collector.otlp.signal import LOGS_SERVICE
from tests.support.otlp_server import OtlpServer, over_grpc, over_http


@dataclass
class LogsServer(OtlpServer):
    rejects: int = 0
    """How many records of each request a partial success rejects."""
    resources: list[ResourceLogs] = field(default_factory=list[ResourceLogs])
    bad: str | None = None
    """A request that holds a signal with this explanation is invalid."""

    def records(self) -> list[LogRecord]:
        return [
            record
            for resource in self.resources
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def take(self, body: bytes) -> bytes | None:
        if self.bad is not None and self.bad.encode() in body:
            return None
        self.resources += ExportLogsServiceRequest.FromString(body).resource_logs
        answer = ExportLogsServiceResponse()
        if self.rejects:
            answer.partial_success.rejected_log_records = self.rejects
            answer.partial_success.error_message = "not these"
        return answer.SerializeToString()


def grpc_server(port: int = 0) -> AbstractAsyncContextManager[LogsServer]:
    return over_grpc(LogsServer(), LOGS_SERVICE.method, port=port)


def http_server() -> AbstractAsyncContextManager[LogsServer]:
    return over_http(LogsServer(), LOGS_SERVICE.path)
