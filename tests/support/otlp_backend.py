"""OTLP trace backends on loopback, gRPC and HTTP, that keep what they get and refuse on demand."""

import asyncio
import contextlib
import http.server
import ssl
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.support.certificates import Pair
from tests.support.receiving import METHOD

Export: TypeAlias = Callable[[bytes, "grpc.aio.ServicerContext[bytes, bytes]"], Awaitable[bytes]]


@dataclass
class Backend:
    """What arrived, and what to answer."""

    endpoint: str
    code: str = "OK"
    """A gRPC status code, or an HTTP status as text, that is answered instead of taking the request."""
    requests: list[bytes] = field(default_factory=list[bytes])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    tries: int = 0
    rejected: tuple[int, str] = (0, "")
    """Of each request, how many spans are rejected, and why."""

    def answer(self) -> bytes:
        rejected, why = self.rejected
        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
            response.partial_success.error_message = why
        return response.SerializeToString()


@contextlib.asynccontextmanager
async def grpc_backend(
    port: int = 0, *, largest: int = -1, export: Export | None = None, tls: Pair | None = None
) -> AsyncGenerator[Backend]:
    """A TraceService that takes bytes as they are, up to `largest`, or answers by `export`."""
    backend = Backend("")

    async def take(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        backend.tries += 1
        if backend.code != "OK":
            await context.abort(grpc.StatusCode[backend.code], "set to")
        backend.requests.append(request)
        pairs = cast("Iterable[tuple[str, str]]", context.invocation_metadata())
        backend.headers.append(dict(pairs))
        return backend.answer()

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", largest)])
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        export or take
    )
    service, _, method = METHOD.strip("/").partition("/")
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {method: handler})]
    )
    listen = f"127.0.0.1:{port}"
    if tls is None:
        backend.endpoint = f"127.0.0.1:{server.add_insecure_port(listen)}"
    else:
        pair = (tls.key.read_bytes(), tls.cert.read_bytes())
        credentials = grpc.ssl_server_credentials([pair])
        backend.endpoint = f"https://127.0.0.1:{server.add_secure_port(listen, credentials)}"
    await server.start()
    try:
        yield backend
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def http_backend(port: int = 0, *, tls: Pair | None = None) -> AsyncGenerator[Backend]:
    """`POST /v1/traces`."""
    backend = Backend("")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            backend.tries += 1
            if self.path != "/v1/traces":
                self._answer(404)
            elif backend.code != "OK":
                self._answer(int(backend.code))
            else:
                backend.requests.append(body)
                backend.headers.append({k.lower(): v for k, v in self.headers.items()})
                self._answer(200)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            said = backend.answer() if status == 200 else b""
            self.send_header("content-length", str(len(said)))
            self.send_header("content-type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its base names it so
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    backend.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.cert, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        backend.endpoint = backend.endpoint.replace("http:", "https:")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield backend
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
