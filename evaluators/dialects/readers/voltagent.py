"""VoltAgent: `entity.*` and `span.type`, with `input` and `output` as they are."""

from __future__ import annotations

from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.content.usage import TokenKeys, read_tokens
from evaluators.dialects.decoding.values import string, unwrap
from evaluators.model import JSON, Span

SCOPE = "@voltagent/core"
_KINDS: dict[str, Kind] = {"llm": "llm", "tool": "tool", "agent": "agent"}
TOKENS = TokenKeys(
    input=("usage.prompt_tokens",),
    output=("usage.completion_tokens",),
    cached=("usage.cached_tokens",),
    reasoning=("usage.reasoning_tokens",),
)
"""Of an agent's whole run. Its model span has the counts of the last step only, and they are not read."""


def speaks(span: Span) -> bool:
    """Whether VoltAgent made the span."""
    return span.scope == SCOPE and "entity.type" in span.attributes


def read(span: Span) -> Facts:
    """The facts of a VoltAgent span. An agent's own has no `span.type`."""
    get = span.attributes.get
    said = string(get("span.type")) or string(get("entity.type")) or ""
    facts = Facts(span=span, dialect="voltagent", kind=_KINDS.get(said, "other"))
    if facts.kind == "tool":
        facts.tool_name, facts.tool_id = string(get("tool.name")), string(get("tool.call.id"))
        facts.arguments = arguments_of(get("input"))
        facts.result = outcome_of(get("output")).result
        return facts
    if facts.kind == "agent":
        facts.agent = string(get("entity.name")) or span.name or None
        facts.names_agent = True
        facts.input, facts.output = _side(span, "input"), _side(span, "output")
        facts.system = get("agent.instructions")
        facts.aggregate = read_tokens(span.attributes, TOKENS)
    if facts.kind == "llm":
        facts.model = string(get("llm.model"))
        if "llm.messages" in span.attributes:
            facts.input = Content(get("llm.messages"), "input")
        if "llm.tools" in span.attributes:
            facts.definitions = Content(_names(get("llm.tools")), "input")
    return facts


def _side(span: Span, side: str) -> Content | None:
    if side not in span.attributes:
        return None
    return Content(span.attributes.get(side), "input" if side == "input" else "output")


def _names(value: JSON) -> JSON:
    """The tools' names, of which several stand in one text."""
    inner = unwrap(value)
    return [name.strip() for name in inner.split(",")] if isinstance(inner, str) else inner
