"""A scripted model on loopback that speaks Anthropic's messages: it asks for one command, then says what it learned."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

ANSWER = "The release is 4.2."


class AnthropicServer:
    """Asks for `command` whenever the last message is a person's; answers ANSWER to its result.

    Whatever else is asked (titles, counts of tokens) gets the same words.
    """

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
        """For ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

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
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                asked: dict[str, Any] = json.loads(self.rfile.read(length) or b"{}")
                if "count_tokens" in self.path:
                    self._send("application/json", b'{"input_tokens": 10}')
                elif asked.get("stream"):
                    events = "".join(server.events(asked))
                    self._send("text/event-stream", events.encode())
                else:
                    self._send("application/json", json.dumps(server.message(asked)).encode())

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
                """Say nothing."""

        return Handler

    def message(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The whole answer."""
        self._calls += 1
        has_result = _has_result(asked)
        uses_tool = bool(asked.get("tools")) and not has_result
        block: dict[str, Any] = (
            {
                "type": "tool_use",
                "id": f"toolu_{self._calls:04}",
                "name": "Bash",
                "input": {"command": self._command, "description": "Read the notes"},
            }
            if uses_tool
            else {"type": "text", "text": ANSWER}
        )
        return {
            "id": f"msg_{self._calls:04}",
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", "claude"),
            "content": [block],
            "stop_reason": "tool_use" if uses_tool else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }

    def events(self, asked: dict[str, Any]) -> Iterator[str]:
        """The same, streamed."""
        whole = self.message(asked)
        (block,) = whole["content"]
        if block["type"] == "tool_use":
            empty: dict[str, Any] = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        begun: dict[str, Any] = {**whole, "content": [], "stop_reason": None}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield _event("message_start", message=begun)
        yield _event("content_block_start", index=0, content_block=empty)
        yield _event("content_block_delta", index=0, delta=delta)
        yield _event("content_block_stop", index=0)
        yield _event("message_delta", delta=ended, usage={"output_tokens": 20})
        yield _event("message_stop")


def _has_result(asked: dict[str, Any]) -> bool:
    """Whether a tool's result came after the last words of a person."""
    messages: list[dict[str, Any]] = asked.get("messages", [])
    users = [each["content"] for each in messages if each["role"] == "user"]
    last: list[dict[str, Any]] | str = users[-1] if users else ""
    return not isinstance(last, str) and any(each["type"] == "tool_result" for each in last)


def _event(kind: str, **data: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
