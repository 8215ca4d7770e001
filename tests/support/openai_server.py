"""A real HTTP server on loopback that speaks /v1/chat/completions and /v1/embeddings, good or bad as it is set."""

import hashlib
import json
import threading
import time
from collections.abc import Mapping
from typing import Any, Literal, cast

from tests.support.loopback import Body, LoopbackServer, Reply

Mode = Literal[
    "good", "slow", "429", "500", "400", "garbage", "half", "wrong_types", "nan", "out_of_range"
]
STATUS: Mapping[str, int] = {"429": 429, "500": 500, "400": 400}


class OpenAiServer(LoopbackServer):
    """Answers by the schema it is given, or badly by `mode`; counts what it was asked and what it answered.

    `slow` waits `delay` seconds before each good answer.
    """

    def __init__(
        self, mode: Mode = "good", *, delay: float = 0.0, embeddings: Mode = "good"
    ) -> None:
        super().__init__()
        self.mode: Mode = mode
        self.embeddings: Mode = embeddings
        self.headers: dict[str, str] = {}
        """Sent with every answer."""
        self.delay = delay
        self.low: str | None = None
        """About what holds this text the numbers are 0.2, else 0.8."""
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

    def asked_about(self, text: str) -> int:
        """How many chat requests hold the text."""
        return sum(text in json.dumps(each["messages"]) for each in list(self.requests))

    def chat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer."""
        with self._lock:
            self.requests.append(body)
        self.open.wait(60)
        mode = self.mode
        if mode == "slow":
            time.sleep(self.delay)
        if mode in STATUS:
            return STATUS[mode], {"error": {"message": "no", "type": mode, "code": mode}}
        is_low = self.low is not None and self.low in json.dumps(body["messages"])
        text = _text(mode, body, 0.2 if is_low else 0.8)
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
        if self.embeddings in STATUS:
            return STATUS[self.embeddings], {"error": {"message": "no"}}
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


def _text(mode: Mode, body: dict[str, Any], usual: float) -> str:
    if mode == "garbage":
        return "I would say it is 0.9 out of 1, quite good!"
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return "{}"
    numbers: dict[Mode, Any] = {
        "wrong_types": "very good",
        "nan": float("nan"),
        "out_of_range": 7.5,
    }
    text = json.dumps(filled(schema, numbers.get(mode, usual)))
    return text[: len(text) // 2] if mode == "half" else text


def filled(schema: dict[str, Any], number: Any, root: dict[str, Any] | None = None) -> Any:
    """An instance of the schema whose numbers are all `number`."""
    root = schema if root is None else root
    if "$ref" in schema:
        found: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[step]
        return filled(found, number, root)
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], number, root)
    if "enum" in schema:
        return schema["enum"][0]
    kinds: list[str] | str = schema.get("type", "")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: filled(each, number, root) for name, each in fields.items()}
    if kind == "array":
        return [filled(schema["items"], number, root)] * schema.get("minItems", 1)
    return {
        "number": number,
        "integer": number if not isinstance(number, float) else 1,
        "boolean": True,
        "null": None,
    }.get(kind, "because it is so")
