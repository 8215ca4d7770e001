"""A real HTTP server on loopback that fails in the way it is set, as OpenAI, Ollama, Anthropic and Bedrock speak."""

import threading
from typing import Any

from tests.support.loopback import Body, LoopbackServer, Reply
from tests.support.provider_ways import Way


class ProviderServer(LoopbackServer):
    """Serves one way; remembers what it was asked."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.asked: list[Body] = []
        """Bodies in the order of their arrival."""
        self.paths: list[str] = []
        self._way = way
        self._lock = threading.Lock()

    def reply(self, path: str, asked: Body) -> Reply:
        """In the words of the API."""
        if path.endswith("/api/show"):  # Ollama's, about the model: no question
            return Reply(404, {"error": "unknown"})
        with self._lock:
            self.asked.append(asked)
            self.paths.append(path)
            number = len(self.asked)
        return translated(path, self._way(number, asked))


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
