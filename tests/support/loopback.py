"""An HTTP server on loopback, of threads, while it is entered; what it answers is its subclass's, or the test's."""

import contextlib
import json
import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from tests.support.certificates import Pair

Body = dict[str, Any]


class Request(NamedTuple):
    """A request; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        """What its JSON holds; None: it is not JSON."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; a status of 0 closes the connection instead."""

    status: int = 200
    body: Body | bytes | str = "{}"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    hangs: bool = False
    """It never comes."""

    @classmethod
    def of(cls, value: Body) -> Self:
        return cls(200, value)

    @classmethod
    def streamed(cls, events: str) -> Self:
        """Server-sent events."""
        return cls(200, events, {"content-type": "text/event-stream"})

    @property
    def data(self) -> bytes:
        """The body as it is sent."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class LoopbackServer:
    def __init__(self, port: int = 0, tls: Pair | None = None) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.cert, tls.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True
        )
        self.over = threading.Event()

    @property
    def url(self) -> str:
        """Without a path."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def handle(self, asked: Request) -> Reply:
        """The answer to a request."""
        return self.reply(asked.path, asked.body or {})

    def reply(self, path: str, asked: Body) -> Reply:
        """The answer to a request of JSON; `asked` is empty where it has no body."""
        raise NotImplementedError

    def was_sent(self, path: str, reply: Reply) -> None:
        """The asker has it."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """No request is served any more."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            reply = server.handle(Request(self.command, self.path, headers, raw))
            if reply.hangs:
                server.over.wait(20)
            if reply.hangs or reply.status == 0:
                self.close_connection = True
                self.connection.close()
                return
            try:
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(reply.data)))
                self.end_headers()
                self.wfile.write(reply.data)
            except OSError:
                return  # the asker is gone
            server.was_sent(self.path, reply)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - its base names them so

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing."""

    return Handler


TAKEN = {
    "slack": Reply(200, "ok"),
    "teams": Reply(202, ""),
    "pagerduty": Reply(202, '{"status": "success", "message": "Event processed"}'),
    "alertmanager": Reply(200, ""),
    "webhook": Reply(204, ""),
}
"""What each kind of target of notices answers to one that it takes."""


class Stub(LoopbackServer):
    """What was asked, and what is answered: `replies` in turn, then what `answer` says."""

    def __init__(self, tls: Pair | None = None) -> None:
        super().__init__(tls=tls)
        self.requests: list[Request] = []
        self.replies: list[Reply] = []
        self.answer: Callable[[Request], Reply] = lambda _asked: Reply()

    def handle(self, asked: Request) -> Reply:
        self.requests.append(asked)
        return self.replies.pop(0) if self.replies else self.answer(asked)


@contextlib.asynccontextmanager
async def stub() -> AsyncGenerator[Stub]:
    """The server, for the time of the block."""
    with Stub() as made:
        yield made
