"""OpenLLMetry (traceloop): `traceloop.entity.*` around workflows, agents and tools."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.dialects import genai
from evaluators.dialects.content import Content
from evaluators.dialects.facts import Facts, Kind
from evaluators.dialects.tool_values import Outcome, arguments_of, outcome_of
from evaluators.dialects.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON, Span

_KINDS: dict[str, Kind] = {"workflow": "agent", "agent": "agent", "tool": "tool", "task": "other"}
_RUNNABLES = ("workflow ", "Runnable")
"""How LangChain's graphs and steps are called in OpenLLMetry for JS: by their class, which names no agent."""
_STATE = '{"args":[{"messages":'
_SUFFIXES = (".workflow", ".task", ".agent", ".tool")


def speaks(span: Span) -> bool:
    """Whether the span is one of OpenLLMetry's own entities."""
    attributes = span.attributes
    return "traceloop.span.kind" in attributes or "traceloop.entity.name" in attributes


def read(span: Span) -> Facts:
    """The facts of an OpenLLMetry entity span, over what the conventions say in it."""
    attributes = span.attributes
    facts = genai.read(span, "traceloop")
    kind = _KINDS.get(str(attributes.get("traceloop.span.kind")))
    if kind is not None and facts.kind not in ("llm", "handoff", kind):
        facts.kind = "tool" if kind == "other" and facts.kind == "tool" else kind
    if facts.kind == "tool":
        _read_tool(span, facts)
        return facts
    if facts.kind == "agent":
        named = string(attributes.get("gen_ai.agent.name"))
        facts.agent = named or string(attributes.get("traceloop.entity.name")) or _plain(span.name)
        facts.names_agent = named is not None or attributes.get("traceloop.span.kind") == "agent"
        if facts.agent.startswith(_RUNNABLES):
            facts.agent = None
    if facts.input is None and "traceloop.entity.input" in attributes:
        facts.input = Content(_input(attributes.get("traceloop.entity.input")), "input")
    if facts.output is None and "traceloop.entity.output" in attributes:
        facts.output = Content(attributes.get("traceloop.entity.output"), "output")
    return facts


def _plain(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _read_tool(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    name = string(attributes.get("gen_ai.tool.name"))
    facts.tool_name = name or string(attributes.get("traceloop.entity.name")) or _plain(span.name)
    entity = attributes.get("traceloop.entity.input")
    if facts.arguments is None and entity is not None:
        facts.arguments = _arguments(entity)
    if facts.tool_id is None and isinstance(entity, str):
        facts.tool_id = _call_id(entity)
    if facts.result is None:
        outcome = _outcome(attributes)
        facts.result, facts.tool_id = outcome.result, facts.tool_id or outcome.id
        if (
            name is None and outcome.name
        ):  # LlamaIndex's spans are named for the class, FunctionTool
            facts.tool_name = outcome.name
        if outcome.is_error:
            facts.tool_error = "error"


def _input(entity: JSON) -> JSON:
    """What went into a step; a graph's state is the first of two arguments, the other is its configuration."""
    if isinstance(entity, str) and entity.startswith(_STATE):
        return as_list(as_dict(unwrap(entity)).get("args"))[:1]
    return entity


def _arguments(entity: JSON) -> JSON:
    """The arguments; OpenLLMetry for JS shows LangChain's as a list of one text."""
    item = as_dict(unwrap(entity))
    given = as_list(item.get("args"))
    if item.keys() == {"args"} and len(given) == 1:
        return arguments_of(given[0])
    return arguments_of(entity)


def _outcome(attributes: Mapping[str, JSON]) -> Outcome:
    """The entity's output; that of an MCP call (OpenLLMetry's client) stands in `{"result", "is_error"}`."""
    given, came = (
        attributes.get("traceloop.entity.input"),
        attributes.get("traceloop.entity.output"),
    )
    if not (isinstance(given, str) and given.startswith('{"tool_name"')):
        return outcome_of(came)
    item = as_dict(unwrap(came))
    if "result" not in item or not item.keys() <= {"result", "is_error"}:
        return outcome_of(came)
    return Outcome(result=item["result"], is_error=item.get("is_error") is True)


def _call_id(entity: str) -> str | None:
    """LangChain passes the call's id among the keyword arguments of its callback."""
    if "tool_call_id" not in entity:
        return None
    kwargs: dict[str, JSON] = as_dict(as_dict(unwrap(entity)).get("kwargs"))
    return string(kwargs.get("tool_call_id"))
