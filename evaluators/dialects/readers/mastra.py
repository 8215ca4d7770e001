"""Mastra before 1.0: `mastra.span.type` says what a span is, `input` and `output` what went in and came out.

Since 1.0 its exporter writes the conventions, and its spans are read as such; only a model's step is still its own.
"""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, string, unwrap
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

MARK = "mastra.span.type"
_STEP = "mastra.model_step.input"
_KINDS: dict[str, Kind] = {
    "agent_run": "agent",
    "workflow_run": "agent",
    "model_generation": "llm",
    "llm_generation": "llm",
    "tool_call": "tool",
    "mcp_tool_call": "tool",
}


def speaks(span: Span) -> bool:
    """Whether Mastra's exporter of that time made the span, or it is a model's step of a later one."""
    return (MARK in span.attributes and span.scope == "@mastra/otel") or _STEP in span.attributes


def read(span: Span) -> Facts:
    """The facts of a Mastra span. A generation is all steps of one run; its counts are their sum."""
    get = span.attributes.get
    if _STEP in span.attributes:
        facts = genai.read(span, "mastra")
        facts.definitions = Content(lambda: _tools(get(_STEP)), "input")
        return facts
    kind = _KINDS.get(str(get(MARK)), "other")
    facts = Facts(span=span, dialect="mastra", kind=kind)
    if kind == "tool":
        _read_tool(span, facts)
        return facts
    if kind == "agent":
        name = string(get("gen_ai.agent.name")) or string(get("gen_ai.agent.id"))
        facts.agent = name or string(get("workflow.id")) or span.name or None
        facts.names_agent = name is not None
    if kind == "llm":
        facts.tokens = usage.read_genai_tokens(span.attributes)
        facts.model = string(get("gen_ai.request.model"))
    if kind != "other":
        facts.input = Content(get("input"), "input") if "input" in span.attributes else None
        facts.output = Content(get("output"), "output") if "output" in span.attributes else None
    elif get(MARK) == "model_step" and "input" in span.attributes:
        facts.definitions = Content(lambda: _tools(get("input")), "input")
    return facts


def _read_tool(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.tool_name = string(get("gen_ai.tool.name")) or genai.tool_in_name(span.name)
    facts.arguments = arguments_of(get("input"))
    outcome = outcome_of(get("output"))
    facts.result, facts.tool_id = outcome.result, outcome.id
    if get("error") is True or outcome.is_error:
        facts.tool_error = string(get("error.message")) or "error"


def _tools(value: JSON) -> JSON:
    """The tools in the request's body, which a step has as it was sent."""
    return as_dict(as_dict(unwrap(value)).get("body")).get("tools")
