"""A scripted model on loopback that speaks OpenAI's responses: it asks for one command, then says what it learned."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

ANSWER = "The release is 4.2."
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
"""What each call is said to have taken."""


class ResponsesServer:
    """Asks for `command` whenever the last message is a person's; answers ANSWER to all else."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.05), daemon=True
        )
        self._calls = 0

    @property
    def url(self) -> str:
        """The `base_url` of a provider."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

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
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send("application/json", b'{"data": [], "models": []}')

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(length)
                if not self.path.endswith("/responses"):
                    self._send("application/json", b"{}")
                    return
                events = "".join(server.events(json.loads(body)))
                self._send("text/event-stream", events.encode())

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                """Say nothing."""

        return Handler

    def events(self, asked: dict[str, Any]) -> Iterator[str]:
        """The answer as it is streamed."""
        self._calls += 1
        item = self._item(asked)
        response = {"id": f"resp_{self._calls}"}
        usage = {
            "input_tokens": INPUT_TOKENS,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT_TOKENS,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        ended = {**response, "status": "completed", "output": [item], "usage": usage}
        for kind, told in (
            ("response.created", {"response": response}),
            ("response.output_item.added", {"output_index": 0, "item": item}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": ended}),
        ):
            yield f"event: {kind}\ndata: {json.dumps({'type': kind, **told})}\n\n"

    def _item(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("tools") and not _has_result(asked["input"]):
            return {
                "type": "function_call",
                "id": f"fc_{self._calls}",
                "call_id": f"call_{self._calls:04}",
                "name": "exec_command",
                "arguments": json.dumps({"cmd": self._command}),
                "status": "completed",
            }
        return {
            "type": "message",
            "id": f"msg_{self._calls}",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        }


def _has_result(items: list[dict[str, Any]]) -> bool:
    """Whether the tool has answered since a person spoke."""
    for item in reversed(items):
        if item.get("type") == "function_call_output":
            return True
        if item.get("role") == "user":
            return False
    return False
