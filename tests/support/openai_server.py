"""A real HTTP server on loopback that speaks /v1/chat/completions and /v1/embeddings, good or bad as it is set."""

import hashlib
import json
import threading
import time
from typing import Any, Literal, cast

from tests.support.loopback import Body, LoopbackServer, Reply

Mode = Literal["good", "slow", "500", "garbage"]


class OpenAiServer(LoopbackServer):
    """Answers by the schema it is given, or badly by `mode`; counts what it was asked and what it answered.

    `slow` waits `delay` seconds before each good answer.
    """

    def __init__(self, mode: Mode = "good", *, delay: float = 0.0) -> None:
        super().__init__()
        self.mode: Mode = mode
        self.headers: dict[str, str] = {}
        """Sent with every answer."""
        self.delay = delay
        self.open = threading.Event()
        """Chat requests wait for it, 60 seconds at most. It is set; a test may clear it for a while."""
        self.open.set()
        self.requests: list[dict[str, Any]] = []
        """Bodies of chat requests, in the order of their arrival."""
        self.answered = 0
        """Chat answers that were sent: what a provider would bill."""
        self.embedded: list[str] = []
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """For `judge.base_url`."""
        return f"{super().url}/v1"

    @property
    def settings(self) -> tuple[str, ...]:
        """Of a service whose judge this is."""
        model, key = "judge.model=openai/test-judge", "judge.api_key=none"
        return (model, key, f"judge.base_url={self.url}")

    def reply(self, path: str, asked: Body) -> Reply:
        chat = path.endswith("/chat/completions")
        status, answer = self.chat(asked) if chat else self.embed(asked)
        return Reply(status, answer, self.headers)

    def was_sent(self, path: str, reply: Reply) -> None:
        if path.endswith("/chat/completions") and reply.status == 200:
            with self._lock:
                self.answered += 1

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer."""
        with self._lock:
            self.requests.append(body)
        self.open.wait(60)
        mode = self.mode
        if mode == "slow":
            time.sleep(self.delay)
        if mode == "500":
            return 500, {"error": {"message": "no", "type": mode, "code": mode}}
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        text = "{}" if schema is None else json.dumps(filled(schema))
        if mode == "garbage":
            text = "I would say it is 0.9 out of 1, quite good!"
        prompt = sum(len(str(each["content"])) for each in body["messages"]) // 4
        return 200, {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": 50,
                "total_tokens": prompt + 50,
            },
        }

    def embed(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer."""
        texts = cast(list[str], body["input"])
        with self._lock:
            self.embedded += texts
        rows = [
            {"object": "embedding", "index": at, "embedding": vector(text)}
            for at, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return 200, {"object": "list", "data": rows, "model": body["model"], "usage": usage}


def vector(text: str) -> list[float]:
    """Eight numbers out of a text."""
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


def filled(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    """An instance of the schema whose numbers are all 0.8."""
    root = schema if root is None else root
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        return filled(found, root)
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], root)
    if "enum" in schema:
        return schema["enum"][0]
    kinds: list[str] | str = schema.get("type", "")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: filled(each, root) for name, each in fields.items()}
    if kind == "array":
        return [filled(schema["items"], root)] * schema.get("minItems", 1)
    return {
        "number": 0.8,
        "integer": 1,
        "boolean": True,
        "null": None,
    }.get(kind, "because it is so")
