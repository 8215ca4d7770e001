"""Fields that a dialect left open, filled from the GenAI attributes of the same span."""

from __future__ import annotations

from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts
from evaluators.dialects.decoding.values import string
from evaluators.dialects.readers import genai


def complete(facts: Facts) -> Facts:
    """The same facts, completed; the dialect's own are kept."""
    span = facts.span
    if not genai.speaks(span) or (facts.kind == "other" and not genai.has_content(span)):
        return facts
    if facts.kind == "tool" and _knows_its_call(facts):
        facts.agent = facts.agent or string(span.attributes.get("gen_ai.agent.name"))
        return facts
    other = genai.read(span)
    if facts.kind == "other" and other.kind == "tool":
        other.dialect = facts.dialect
        return other
    facts.agent = facts.agent or other.agent
    if facts.kind == "tool":
        _complete_tool(facts, other)
        return facts
    if facts.kind == "llm":
        facts.tokens = other.tokens if facts.tokens is NO_TOKENS else facts.tokens
        facts.model = facts.model or other.model
        facts.response_id = other.response_id or facts.response_id
        facts.cost = facts.cost if facts.cost is not None else other.cost
    facts.system = other.system if facts.system is None else facts.system
    facts.input = _better(facts.input, other.input)
    facts.output = _better(facts.output, other.output)
    facts.definitions = other.definitions or facts.definitions
    return facts


def _knows_its_call(facts: Facts) -> bool:
    """Whether the dialect has everything about its tool call."""
    return None not in (facts.tool_name, facts.tool_id, facts.arguments, facts.result)


def _complete_tool(facts: Facts, other: Facts) -> None:
    facts.tool_id = facts.tool_id or other.tool_id
    if other.kind != "tool":
        return
    facts.tool_name = other.tool_name or facts.tool_name
    if facts.arguments is None:
        facts.arguments = other.arguments
    if facts.result is None:
        facts.result = other.result
    facts.tool_error = facts.tool_error or other.tool_error


def _better(own: Content | None, other: Content | None) -> Content | None:
    """The conventions' messages, where there are any: what the dialect has beside them is the same, flattened."""
    return own if other is None else other
