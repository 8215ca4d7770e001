"""A real HTTP server on loopback that fails in the way it is set, as OpenAI, Ollama, Anthropic and Bedrock speak."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.support.provider_ways import Body, Reply, Way


class ProviderServer:
    """Serves one way; remembers what it was asked."""

    def __init__(self, way: Way) -> None:
        self.asked: list[Body] = []
        """Bodies in the order of their arrival."""
        self.paths: list[str] = []
        self._way = way
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.05), daemon=True
        )

    @property
    def url(self) -> str:
        """Without a path."""
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
        """Ended."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def reply(self, path: str, body: Body) -> Reply:
        """The reply to one request, in the words of its API."""
        if path.endswith("/api/show"):  # Ollama's, about the model: no question
            return Reply(404, {"error": "unknown"})
        with self._lock:
            self.asked.append(body)
            self.paths.append(path)
            number = len(self.asked)
        return translated(path, self._way(number, body))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body: Body = json.loads(self.rfile.read(length) or b"{}")
                reply = server.reply(self.path, body)
                if reply.status == 0:
                    self.close_connection = True
                    self.connection.close()
                    return
                payload = (
                    reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                )
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        return Handler


def translated(path: str, reply: Reply) -> Reply:
    """An OpenAI completion as the API of this path gives it; what is not a completion stays."""
    if reply.status != 200 or not isinstance(reply.body, dict) or not reply.body.get("choices"):
        return reply
    text: str = reply.body["choices"][0]["message"]["content"]
    return Reply(200, _other_forms(path, text) or reply.body, reply.headers)


def _other_forms(path: str, text: str) -> dict[str, Any] | None:
    counts = {"prompt_eval_count": 100, "eval_count": 20, "done": True, "done_reason": "stop"}
    made = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    if path.endswith("/api/generate"):
        return {**made, **counts, "response": text}
    if path.endswith("/api/chat"):
        return {**made, **counts, "message": {"role": "assistant", "content": text}}
    if path.endswith("/converse"):
        return {
            "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120},
            "metrics": {"latencyMs": 1},
        }
    if path.endswith("/messages"):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }
    return None
