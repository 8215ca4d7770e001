"""Model calls as the GenAI conventions write them."""

from typing import Any

from tests.support.dialect_spans import SpanSpec
from tests.support.weather import ANSWER, ARGUMENTS, dump


def chat(span: int, start: int, end: int, **more: Any) -> SpanSpec:
    """A model call; `attributes` are added, the rest are the span's own."""
    attributes = {"gen_ai.operation.name": "chat", **more.pop("attributes", {})}
    return SpanSpec(
        id=span, parent=1, name="chat", start=start, end=end, attributes=attributes, **more
    )


def asks(*ids: str, name: str = "get_weather", arguments: Any = ARGUMENTS) -> str:
    parts = [{"type": "tool_call", "id": i, "name": name, "arguments": arguments} for i in ids]
    return dump([{"role": "assistant", "parts": parts}])


def says(text: str = ANSWER) -> str:
    return dump([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


ROOT = SpanSpec(id=1, name="work", end=99)
CHAT = {"gen_ai.operation.name": "chat"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}


def said(text: str, *calls: dict[str, Any]) -> str:
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    return dump([{"role": "assistant", "parts": [*parts, *calls]}])


def asked(*texts: str) -> str:
    return dump([{"role": "user", "parts": [{"type": "text", "content": text}]} for text in texts])


def call(name: str, identifier: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": identifier, "name": name, "arguments": arguments}


def answered(identifier: str, response: Any) -> str:
    part = {"type": "tool_call_response", "id": identifier, "response": response}
    return dump([{"role": "tool", "parts": [part]}])


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **more}
