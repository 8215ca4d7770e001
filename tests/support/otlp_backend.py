"""OTLP trace backends on loopback, gRPC and HTTP, that keep what they get and refuse on demand."""

import asyncio
import contextlib
import http.server
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import grpc

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


@contextlib.asynccontextmanager
async def grpc_backend(
    port: int = 0, *, largest: int = -1, export: Export | None = None
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
        return b""

    server = grpc.aio.server(options=[("grpc.max_receive_message_length", largest)])
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
        export or take
    )
    service, _, method = METHOD.strip("/").partition("/")
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {method: handler})]
    )
    backend.endpoint = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{port}')}"
    await server.start()
    try:
        yield backend
    finally:
        await server.stop(0)


@contextlib.asynccontextmanager
async def http_backend(port: int = 0) -> AsyncGenerator[Backend]:
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
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its base names it so
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    backend.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield backend
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
