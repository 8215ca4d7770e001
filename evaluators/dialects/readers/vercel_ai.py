"""Vercel AI SDK, v3 to v6: `ai.generateText` around `.doGenerate` and `ai.toolCall`."""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.decoding.flattened import unflatten
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON, Span

_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def speaks(span: Span) -> bool:
    """Whether the SDK made the span."""
    return "ai.operationId" in span.attributes


def read(span: Span) -> Facts:
    """The facts of a span of the AI SDK."""
    get = span.attributes.get
    facts = Facts(span=span, dialect="vercel_ai", kind=_kind(str(get("ai.operationId"))))
    facts.agent = string(get("ai.telemetry.functionId"))
    if facts.kind == "tool":
        _read_tool(span, facts)
        return facts
    if facts.kind == "agent":
        facts.names_agent = facts.agent is not None
        facts.agent = facts.agent or span.name or None
        facts.aggregate = usage.read_tokens(span.attributes, usage.VERCEL)
    if facts.kind == "llm":
        facts.tokens = usage.read_tokens(span.attributes, usage.VERCEL)
        facts.cost = usage.read_cost(span.attributes)
        facts.model = string(get("ai.response.model")) or string(get("ai.model.id"))
        facts.response_id = string(get("ai.response.id"))
    _read_content(span, facts)
    return facts


def _kind(operation: str) -> Kind:
    if operation == "ai.toolCall":
        return "tool"
    if operation in _OUTER:
        return "agent"
    return (
        "llm"
        if operation.endswith((".doGenerate", ".doStream")) and "embed" not in operation
        else "other"
    )


def _read_tool(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.tool_name = string(get("ai.toolCall.name"))
    facts.tool_id = string(get("ai.toolCall.id"))
    facts.arguments = arguments_of(_first(span, ARGUMENTS))
    facts.result = outcome_of(_first(span, RESULT)).result
    if "ai.toolCall.error" in span.attributes:
        facts.tool_error = string(get("ai.toolCall.error")) or "error"


ARGUMENTS = ("ai.toolCall.args", "ai.toolCall.input", "traceloop.entity.input")
RESULT = ("ai.toolCall.result", "ai.toolCall.output", "traceloop.entity.output")
_FUNCTIONS = "llm.request.functions."
"""OpenLLMetry for JS gives what the SDK wrote its own names."""


def _first(span: Span, keys: tuple[str, ...]) -> JSON:
    return next((span.attributes.get(key) for key in keys if key in span.attributes), None)


def _read_content(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    for key in ("ai.prompt.messages", "ai.prompt"):
        if key in span.attributes:
            facts.input = Content(_prompt(get(key)), "input")
            break
    if not _ANSWERS.isdisjoint(span.attributes):
        facts.output = Content(lambda: _answer(span), "output")
    if "ai.prompt.tools" in span.attributes:
        facts.definitions = Content(get("ai.prompt.tools"), "input")
    elif f"{_FUNCTIONS}0.name" in span.attributes:
        names = names_of(span.attributes)
        facts.definitions = Content(lambda: unflatten(names, get, _FUNCTIONS), "input")


_ANSWERS = frozenset(
    {
        "ai.response.text",
        "ai.response.toolCalls",
        "ai.response.object",
        "ai.result.text",
        "ai.result.toolCalls",
        "ai.result.object",
    }
)


def _prompt(value: JSON) -> JSON:
    """`{"system", "prompt"}` is a question in one text."""
    inner = as_dict(unwrap(value))
    if isinstance(inner.get("prompt"), str):
        messages: list[JSON] = [{"role": "user", "content": inner["prompt"]}]
        if isinstance(inner.get("system"), str):
            messages.insert(0, {"role": "system", "content": inner["system"]})
        return messages
    return value


def _answer(span: Span) -> JSON:
    get = span.attributes.get
    for stem in ("ai.response", "ai.result"):
        text = get(f"{stem}.text") or get(f"{stem}.object")
        calls = as_list(unwrap(get(f"{stem}.toolCalls")))
        if text or calls:
            return [
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": text}],
                    "tool_calls": calls,
                }
            ]
    return None
