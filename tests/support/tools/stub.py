"""An HTTP server on loopback that keeps what it is asked and answers as a test says."""

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """An answer."""

    status: int = 200
    text: str = "{}"
    headers: Mapping[str, str] = {}
    hangs: bool = False
    """It never comes."""


TAKEN = {
    "slack": Reply(200, "ok"),
    "teams": Reply(202, ""),
    "pagerduty": Reply(202, '{"status": "success", "message": "Event processed"}'),
    "alertmanager": Reply(200, ""),
    "webhook": Reply(204, ""),
}
"""What each kind of target of notices answers to one that it takes."""


class Request(NamedTuple):
    """A request."""

    method: str
    path: str
    body: Any
    """Of JSON what it holds; else None."""
    headers: Mapping[str, str]
    raw: bytes


@dataclass
class Stub:
    """What was asked, and what is answered: `replies` in turn, then what `answer` says."""

    url: str = ""
    requests: list[Request] = field(default_factory=list[Request])
    replies: list[Reply] = field(default_factory=list[Reply])
    answer: Callable[[Request], Reply] = lambda _asked: Reply()
    over: threading.Event = field(default_factory=threading.Event)

    def reply(self, asked: Request) -> Reply:
        """The answer to a request."""
        self.requests.append(asked)
        return self.replies.pop(0) if self.replies else self.answer(asked)


@contextlib.asynccontextmanager
async def stub() -> AsyncGenerator[Stub]:
    """The server, for the time of the block."""
    made = Stub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", "0")))
            try:
                body = json.loads(raw)
            except ValueError:
                body = None
            headers = {key.lower(): value for key, value in self.headers.items()}
            reply = made.reply(Request(self.command, self.path, body, headers, raw))
            if reply.hangs:
                made.over.wait(20)
                self.close_connection = True
                return
            data = reply.text.encode()
            self.send_response(reply.status)
            self.send_header("content-length", str(len(data)))
            for key, value in reply.headers.items():
                self.send_header(key, value)
            with contextlib.suppress(OSError):  # a client may have gone
                self.end_headers()
                self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - its base names them so

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its base names it so
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        made.over.set()
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
