"""LangSmith's OTel export: inputs and outputs as JSON in `gen_ai.prompt` and `gen_ai.completion`."""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, python_literal, string, unwrap
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

MARK = "langsmith.span.kind"
_KINDS: dict[str, Kind] = {"llm": "llm", "tool": "tool", "agent": "agent"}


def speaks(span: Span) -> bool:
    """Whether LangSmith made the span."""
    return MARK in span.attributes


def read(span: Span) -> Facts:
    """The facts of a LangSmith run."""
    get = span.attributes.get
    facts = genai.read(span, "langsmith")
    facts.kind = _KINDS.get(str(get(MARK)).lower(), "other")
    name = string(get("langsmith.trace.name")) or span.name or None
    if facts.kind == "tool":
        facts.tool_name = string(get("gen_ai.tool.name")) or name
        facts.arguments = _arguments(get("gen_ai.prompt"))
        outcome = outcome_of(get("gen_ai.completion"))
        facts.result, facts.tool_id = outcome.result, facts.tool_id or outcome.id
        facts.tool_error = "error" if outcome.is_error else None
    elif facts.kind == "llm":
        facts.tokens = usage.read_genai_tokens(span.attributes)
        if facts.tokens is NO_TOKENS:
            answer = as_dict(unwrap(get("gen_ai.completion")))
            facts.tokens = usage.read_usage_object(
                answer.get("usage_metadata") or answer.get("usage")
            )
        facts.aggregate = NO_TOKENS
        facts.request_tools = facts.definitions is None
        facts.model = facts.model or string(get("gen_ai.response.model"))
        facts.model = facts.model or string(get("gen_ai.request.model"))
    elif facts.kind == "agent" or not span.parent_span_id:
        facts.agent = string(get("gen_ai.agent.name")) or name
    return facts


def _arguments(value: JSON) -> JSON:
    """A tool run's inputs: the arguments, or one text `input` that shows them as a Python repr."""
    given = arguments_of(value)
    item = as_dict(given)
    text = item.get("input")
    if item.keys() != {"input"} or not isinstance(text, str):
        return given
    return as_dict(unwrap(text)) or python_literal(text) or given
