"""Google's Agent Development Kit: Gemini shapes under `gcp.vertex.agent.*` (1.x), beside the conventions since."""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import NO_TOKENS, Facts
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, string, unwrap
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

_PREFIX = "gcp.vertex.agent."
_EMPTY = ("{}", "N/A", "<not specified>", "null")


def speaks(span: Span) -> bool:
    """Whether ADK made the span."""
    return span.scope == "gcp.vertex.agent" or f"{_PREFIX}invocation_id" in span.attributes


def read(span: Span) -> Facts:
    """The facts of an ADK span."""
    get = span.attributes.get
    facts = genai.read(span, "google_adk")
    if facts.kind in ("other", "llm"):
        _kind_by_name(span, facts)
    if facts.kind == "tool":
        _read_tool(span, facts)
    elif facts.kind == "llm":
        request, response = (
            _given(get(f"{_PREFIX}llm_request")),
            _given(get(f"{_PREFIX}llm_response")),
        )
        facts.request_tools = request is not None and facts.definitions is None
        facts.input = facts.input or (Content(request, "input") if request else None)
        facts.output = facts.output or (
            Content(lambda: _answer(response), "output") if response else None
        )
        facts.model = facts.model or string(get("gen_ai.request.model"))
        if facts.tokens is NO_TOKENS and response:
            facts.tokens = _tokens(response)
    return facts


def _kind_by_name(span: Span, facts: Facts) -> None:
    head, _, tail = span.name.partition(" ")
    name = tail.strip("[]")
    if head == "call_llm":
        facts.kind = "llm"
    elif head in ("agent_run", "invoke_agent"):
        facts.kind, facts.agent, facts.names_agent = "agent", facts.agent or name or None, True
    elif head in ("execute_tool", "tool_call"):
        facts.kind, facts.tool_name = "tool", facts.tool_name or name or None


def _given(value: JSON) -> JSON:
    return None if value in _EMPTY else value


def _answer(response: JSON) -> JSON:
    """The response's content is one Gemini message of role model."""
    item = as_dict(unwrap(response))
    return [item["content"]] if isinstance(item.get("content"), dict) else item


def _tokens(response: JSON) -> usage.Tokens:
    item = as_dict(unwrap(response))
    return usage.read_usage_object(item.get("usage_metadata") or item.get("usageMetadata"))


def _read_tool(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.tool_id = None if facts.tool_id in _EMPTY else facts.tool_id
    given = get(f"{_PREFIX}tool_call_args")
    # Without content, arguments and response are both emptied; a tool may well have no arguments.
    hidden = given in _EMPTY and (given != "{}" or get(f"{_PREFIX}tool_response") in _EMPTY)
    if facts.arguments is None and not hidden:
        facts.arguments = arguments_of(given)
    if facts.result is None:
        facts.result = outcome_of(_given(get(f"{_PREFIX}tool_response"))).result
    response = unwrap(facts.result) if isinstance(facts.result, str) else facts.result
    item = as_dict(response)
    if item.keys() == {"result"}:  # how ADK wraps what is no object
        facts.result = item["result"]
    if isinstance(item.get("error"), str) and item.keys() == {"error"}:
        facts.tool_error = item["error"]
    elif item.get("status") == "error":  # how ADK's documentation tells tools to report failure
        facts.tool_error = string(item.get("error_message")) or "error"
