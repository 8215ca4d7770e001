"""A model on loopback that answers coding agents from a script: one file per language it speaks is beside this one.

It asks for one command whenever a person has spoken last, and says ANSWER to all else.
"""

import json
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

ANSWER = "The release is 4.2."
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
"""What each call is said to have taken."""


class Reply(NamedTuple):
    """What a request is answered with."""

    kind: str
    """Its content type."""
    body: bytes

    @classmethod
    def of(cls, value: object) -> Self:
        """JSON."""
        return cls("application/json", json.dumps(value).encode())

    @classmethod
    def streamed(cls, events: str) -> Self:
        """Server-sent events."""
        return cls("text/event-stream", events.encode())


class ScriptedModel(ABC):
    """Serves while it is entered."""

    def __init__(self, command: str) -> None:
        """`command` is what it asks for."""
        self.command = command
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.05), daemon=True
        )

    @property
    def url(self) -> str:
        """Where it serves, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @abstractmethod
    def reply(self, path: str, asked: dict[str, Any]) -> Reply:
        """The answer to a request; `asked` is empty where it has no body."""

    def __enter__(self) -> Self:
        """Serving."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """No request is served any more."""
        self._server.shutdown()
        self._thread.join(timeout=10)
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                self._answer(json.loads(self.rfile.read(length) or b"{}"))

            def _answer(self, asked: dict[str, Any]) -> None:
                reply = model.reply(self.path, asked)
                self.send_response(200)
                self.send_header("content-type", reply.kind)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                """Say nothing."""

        return Handler
