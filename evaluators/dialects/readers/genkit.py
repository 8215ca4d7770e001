"""Genkit (JS, Go, Python): `genkit:*` attributes; a span's kind stands in `genkit:metadata:subtype`."""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON, Span, Tokens

_PREFIX = "genkit:"
MARK = f"{_PREFIX}type"
_KINDS: dict[str, Kind] = {
    "model": "llm",
    "background-model": "llm",
    "tool": "tool",
    "tool.v2": "tool",
    "flow": "agent",
    "agent": "agent",
}


def speaks(span: Span) -> bool:
    """Whether Genkit made the span."""
    return MARK in span.attributes


def read(span: Span) -> Facts:
    """The facts of a Genkit action. The `generate` spans between them repeat what the models say."""
    get = span.attributes.get
    said = string(get(f"{_PREFIX}metadata:subtype")) or string(get(MARK)) or ""
    facts = Facts(span=span, dialect="genkit", kind=_KINDS.get(said, "other"))
    name = string(get(f"{_PREFIX}name")) or span.name or None
    given, came = get(f"{_PREFIX}input"), get(f"{_PREFIX}output")
    if facts.kind == "tool":
        facts.tool_name, facts.arguments = name, arguments_of(given)
        facts.result = outcome_of(came).result
    elif facts.kind == "agent":
        facts.agent, facts.names_agent = name, name is not None
        facts.input = Content(given, "input") if given is not None else None
        facts.output = Content(came, "output") if came is not None else None
    elif facts.kind == "llm":
        _read_call(facts, name or "", unwrap(given), unwrap(came))
    return facts


def _read_call(facts: Facts, name: str, given: JSON, came: JSON) -> None:
    request, answer = as_dict(given), as_dict(came)
    raw = as_dict(answer.get("raw") or answer.get("custom"))
    facts.tokens = _tokens(answer.get("usage"))
    facts.model = string(raw.get("model")) or name.rpartition("/")[2] or None
    facts.response_id = string(raw.get("id"))
    facts.input = Content([_message(item) for item in as_list(request.get("messages"))], "input")
    message = answer.get("message")
    if message is None:  # before 1.0 a model answered with candidates
        message = as_dict(next(iter(as_list(answer.get("candidates"))), None)).get("message")
    facts.output = Content([_message(message)], "output") if message is not None else None
    if isinstance(request.get("tools"), list):
        facts.definitions = Content(request["tools"], "input")


def _tokens(value: JSON) -> Tokens:
    counts = as_dict(value)
    return usage.read_usage_object(
        {
            **counts,
            "cachedContentTokenCount": counts.get("cachedContentTokens"),
            "thoughtsTokenCount": counts.get("thoughtsTokens"),
        }
    )


def _message(value: JSON) -> JSON:
    """A message whose requests and answers of tools are written as the conventions write them."""
    item = as_dict(value)
    return {"role": item.get("role"), "parts": [_part(p) for p in as_list(item.get("content"))]}


def _part(value: JSON) -> JSON:
    part = as_dict(value)
    call, result = as_dict(part.get("toolRequest")), as_dict(part.get("toolResponse"))
    if call:
        return {
            "type": "tool_call",
            "id": call.get("ref"),
            "name": call.get("name"),
            "arguments": call.get("input"),
        }
    if result:
        return {
            "type": "tool_call_response",
            "id": result.get("ref"),
            "name": result.get("name"),
            "response": result.get("output"),
        }
    return {"type": "text", "content": part["text"]} if "text" in part else part
