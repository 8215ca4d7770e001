"""OTLP logs servers on loopback, gRPC and HTTP, that keep what they get and refuse on demand."""

import asyncio
import contextlib
import http.server
import threading
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs


@dataclass
class LogsServer:
    """What arrived, and what to answer."""

    endpoint: str = ""
    code: str = "OK"
    """A gRPC status code, or an HTTP status as text, that is answered instead of taking the request."""
    rejects: int = 0
    """How many records of each request a partial success rejects."""
    resources: list[ResourceLogs] = field(default_factory=list[ResourceLogs])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    bad: str | None = None
    """A request that holds a signal with this explanation is invalid."""

    def records(self) -> list[LogRecord]:
        return [
            record
            for resource in self.resources
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def take(self, body: bytes, headers: Mapping[str, str]) -> bytes | None:
        """The answer; None when the request is invalid."""
        request = ExportLogsServiceRequest.FromString(body)
        self.headers.append(headers)
        if self.bad is not None and self.bad.encode() in body:
            return None
        self.resources += request.resource_logs
        answer = ExportLogsServiceResponse()
        if self.rejects:
            answer.partial_success.rejected_log_records = self.rejects
            answer.partial_success.error_message = "not these"
        return answer.SerializeToString()


def _texts(metadata: object) -> dict[str, str]:
    pairs = cast("Iterable[tuple[str, str]]", metadata)  # text keys and values: no -bin keys here
    return dict(pairs)


@contextlib.asynccontextmanager
async def grpc_server(port: int = 0) -> AsyncGenerator[LogsServer]:
    logs = LogsServer()

    async def export(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        if logs.code != "OK":
            await context.abort(grpc.StatusCode[logs.code], "set to")
        answer = logs.take(request, _texts(context.invocation_metadata()))
        if answer is None:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "invalid")
        return answer

    server = grpc.aio.server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(export)
    service = "opentelemetry.proto.collector.logs.v1.LogsService"
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {"Export": handler})]
    )
    logs.endpoint = f"http://127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    await server.start()
    try:
        yield logs
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def http_server() -> AsyncGenerator[LogsServer]:
    logs = LogsServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path != "/v1/logs":
                self._answer(404, b"")
            elif logs.code != "OK":
                self._answer(int(logs.code), b"set to")
            else:
                headers = {key.lower(): value for key, value in self.headers.items()}
                answer = logs.take(body, headers)
                self._answer(*((400, b"invalid") if answer is None else (200, answer)))

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its base names it so
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    logs.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield logs
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
