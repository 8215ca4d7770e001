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
HELPER = {**AGENT, "gen_ai.agent.name": "helper"}


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


def model(number: int, at: int = 0, sent: str = "", answer: str = "", **more: Any) -> SpanSpec:
    """A model call with messages on both sides; `more` are fields of the span."""
    sides = {"gen_ai.input.messages": sent, "gen_ai.output.messages": answer}
    return made(number, at, CHAT | {key: side for key, side in sides.items() if side}, **more)


def ran(number: int, at: int, name: str, call_id: str | None = None, **more: Any) -> SpanSpec:
    """A tool's span; `more` are its arguments and result, and fields of the span."""
    own = {key: more.pop(key) for key in ("arguments", "result") if key in more}
    return made(number, at, tool(name, call_id, **own), **more)


def made(number: int, at: int, own: dict[str, Any], /, **more: Any) -> SpanSpec:
    """A span below the root that takes a millisecond, unless `more` says otherwise."""
    fields: dict[str, Any] = {"id": number, "parent": 1, "start": at, "end": at + 1, **more}
    return SpanSpec(**{**fields, "attributes": own | more.get("attributes", {})})


def raised(kind: str, message: str = "", **more: str) -> tuple[str, dict[str, Any]]:
    """The event of an exception."""
    return "exception", {"exception.type": kind, "exception.message": message, **more}


def tool(
    name: str = "get_weather",
    call_id: str | None = None,
    arguments: Any = None,
    result: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """The attributes of a tool's span; those that are None are left out."""
    said = {"call.id": call_id, "call.arguments": arguments, "call.result": result}
    own = {f"gen_ai.tool.{key}": value for key, value in said.items() if value is not None}
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **own, **more}
