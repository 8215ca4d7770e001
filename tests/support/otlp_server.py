"""OTLP servers on loopback, over gRPC and HTTP, that keep what they get and refuse on demand."""

import contextlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeVar, cast

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs

from collector.otlp.signal import LOGS_SERVICE
from tests.support.certificates import Pair
from tests.support.loopback import LoopbackServer, Reply, Request
from tests.support.receiving import METHOD

Export = Callable[[bytes, "grpc.aio.ServicerContext[bytes, bytes]"], Awaitable[bytes]]


@dataclass
class OtlpServer:
    """What arrived, and what to answer."""

    endpoint: str = ""
    code: str = "OK"
    """A gRPC status code, or an HTTP status as text, that is answered instead of taking the request."""
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    tries: int = 0

    @abstractmethod
    def take(self, body: bytes) -> bytes | None:
        """The answer; None when the request is invalid."""


Server = TypeVar("Server", bound=OtlpServer)


@contextlib.asynccontextmanager
async def over_grpc(
    made: Server,
    method: str,
    *,
    port: int = 0,
    largest: int = -1,
    export: Export | None = None,
    tls: Pair | None = None,
) -> AsyncGenerator[Server]:
    """Takes messages of up to `largest` bytes by the method, `/service/name`, or answers by `export`."""

    async def take(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        made.tries += 1
        if made.code != "OK":
            await context.abort(grpc.StatusCode[made.code], "set to")
        # Text keys and values: no -bin keys here.
        pairs = cast("Iterable[tuple[str, str]]", context.invocation_metadata())
        made.headers.append(dict(pairs))
        answer = made.take(request)
        if answer is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "invalid")
        return answer

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", largest)])
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        export or take
    )
    service, _, name = method.strip("/").partition("/")
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {name: handler})]
    )
    listen = f"127.0.0.1:{port}"
    if tls is None:
        made.endpoint = f"http://127.0.0.1:{server.add_insecure_port(listen)}"
    else:
        pair = (tls.key.read_bytes(), tls.cert.read_bytes())
        credentials = grpc.ssl_server_credentials([pair])
        made.endpoint = f"https://127.0.0.1:{server.add_secure_port(listen, credentials)}"
    await server.start()
    try:
        yield made
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def over_http(
    made: Server, path: str, *, port: int = 0, tls: Pair | None = None
) -> AsyncGenerator[Server]:
    """Takes what is posted to the path, one request a connection."""
    headers = {"content-type": "application/x-protobuf", "connection": "close"}

    class OverHttp(LoopbackServer):
        def handle(self, asked: Request) -> Reply:
            made.tries += 1
            if asked.path != path:
                return Reply(404, b"", headers)
            if made.code != "OK":
                return Reply(int(made.code), b"set to", headers)
            made.headers.append(asked.headers)
            answer = made.take(asked.raw)
            invalid = answer is None
            return Reply(400 if invalid else 200, b"invalid" if invalid else answer, headers)

    with OverHttp(port, tls) as server:
        made.endpoint = server.url
        yield made


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
