"""Model calls as the GenAI conventions write them."""

from __future__ import annotations

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
