"""An HTTP server on loopback, of threads, while it is entered; what it answers is its subclass's."""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response; a status of 0 closes the connection instead."""

    status: int
    body: Body | bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, value: Body) -> Self:
        return cls(200, value)

    @classmethod
    def streamed(cls, events: str) -> Self:
        """Server-sent events."""
        return cls(200, events.encode(), {"content-type": "text/event-stream"})


class LoopbackServer:
    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.05), daemon=True
        )

    @property
    def url(self) -> str:
        """Without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def reply(self, path: str, asked: Body) -> Reply:
        """The answer to a request; `asked` is empty where it has no body."""
        raise NotImplementedError

    def was_sent(self, path: str, reply: Reply) -> None:
        """The asker has it."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """No request is served any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            reply = server.reply(self.path, json.loads(self.rfile.read(length) or b"{}"))
            if reply.status == 0:
                self.close_connection = True
                self.connection.close()
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                return  # the asker is gone
            server.was_sent(self.path, reply)

        do_POST = do_GET  # noqa: N815 - its base names them so

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            """Say nothing."""

    return Handler
