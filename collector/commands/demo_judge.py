"""The demo's judge: a server on loopback that speaks /v1/chat/completions, and knows the wrong answers."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from collector.commands.demo_agent import NON_ANSWER, POLITELY

GOOD, BAD = 0.9, 0.2  # its scores


@contextmanager
def scripted_judge() -> Generator[str]:
    """Serves until the end of the context; its address, for `judge.base_url`."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing where whoever asked has ended: the story has the terminal."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        recording = json.dumps(asked["messages"])
        score = BAD if NON_ANSWER in recording or POLITELY in recording else GOOD
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
        message = {"role": "assistant", "content": json.dumps(filled(schema, score, schema))}
        answer = {
            "id": "scripted",
            "object": "chat.completion",
            "created": 1,
            "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        payload = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing."""


def filled(schema: Any, score: float, root: Any) -> Any:
    """An instance of a strict JSON Schema in which every number is the score."""
    if "$ref" in schema:
        found = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        return filled(found, score, root)
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], score, root)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: filled(each, score, root) for name, each in fields.items()}
    if kind == "array":
        return [filled(schema["items"], score, root)] * schema.get("minItems", 1)
    values = {"number": score, "integer": 1, "boolean": True, "null": None}
    return values.get(kind, "as scripted")
