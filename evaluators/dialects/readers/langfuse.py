"""Langfuse: `langfuse.observation.*` of the Python and JS SDKs, v2 to v5."""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, integer, number, string, unwrap
from evaluators.model import JSON, Span, Tokens

_KINDS: dict[str, Kind] = {"generation": "llm", "tool": "tool", "agent": "agent"}
_PREFIX = "langfuse.observation."


def speaks(span: Span) -> bool:
    """Whether Langfuse's SDK made the span."""
    return span.scope.startswith("langfuse") or f"{_PREFIX}type" in span.attributes


def read(span: Span) -> Facts:
    """The facts of a Langfuse observation."""
    get = span.attributes.get
    kind = _KINDS.get(str(get(f"{_PREFIX}type")).lower(), "other")
    facts = Facts(span=span, dialect="langfuse", kind=kind)
    given, came = get(f"{_PREFIX}input"), get(f"{_PREFIX}output")
    if kind == "tool":
        _read_tool(span, facts, given, came)
        return facts
    if not span.parent_span_id:
        given = get("langfuse.trace.input") if given is None else given
        came = get("langfuse.trace.output") if came is None else came
    if kind == "other":
        facts.tool_error = _error(span)
    facts.input = Content(given, "input") if given is not None else None
    facts.output = Content(came, "output") if came is not None else None
    if kind == "agent":
        facts.agent, facts.names_agent = span.name or None, True
    if kind == "llm":
        facts.request_tools = True
        facts.model = string(get(f"{_PREFIX}model.name")) or string(get(f"{_PREFIX}model"))
        facts.tokens = _tokens(unwrap(get(f"{_PREFIX}usage_details")))
        facts.cost = number(as_dict(unwrap(get(f"{_PREFIX}cost_details"))).get("total"))
    return facts


def _read_tool(span: Span, facts: Facts, given: JSON, came: JSON) -> None:
    get = span.attributes.get
    facts.tool_name = span.name or None
    facts.arguments = arguments_of(given)
    outcome = outcome_of(came)
    facts.result = outcome.result
    facts.tool_id = outcome.id or string(unwrap(get(f"{_PREFIX}metadata.tool_call_id")))
    facts.tool_error = _error(span)
    if outcome.is_error and facts.tool_error is None:
        facts.tool_error = string(get(f"{_PREFIX}status_message")) or "error"


def _error(span: Span) -> str | None:
    get = span.attributes.get
    if get(f"{_PREFIX}level") != "ERROR":
        return None
    return string(get(f"{_PREFIX}status_message")) or "error"


def _tokens(value: JSON) -> Tokens:
    """Usage details. The LangChain handler takes the details (`input_cache_read`) out of `input`: put them back."""
    details = as_dict(value)
    tokens = usage.read_usage_object(details)
    given, came, total = (integer(details.get(key)) for key in ("input", "output", "total"))
    if given is None or came is None or total is None or given + came == total:
        return tokens
    return Tokens(
        input=given + _details(details, "input_"),
        output=came + _details(details, "output_"),
        cached=tokens.cached,
        reasoning=tokens.reasoning,
    )


def _details(details: dict[str, JSON], prefix: str) -> int:
    return sum(integer(value) or 0 for key, value in details.items() if key.startswith(prefix))
