"""Claude Code and the Claude Agent SDK: `claude_code.interaction`, `.llm_request`, `.tool`.

Tokens stand under bare names, the question in `user_prompt`, a tool's result in an event. Its failure is told by the
span of its execution, inside the tool's own. Answers and the arguments of MCP tools are not exported.
"""

from __future__ import annotations

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import NO_TOKENS, Facts
from evaluators.dialects.content.tool_values import arguments_of
from evaluators.dialects.decoding.values import string
from evaluators.dialects.readers import genai
from evaluators.model import Span, Tokens

_REDACTED = "<REDACTED>"


def speaks(span: Span) -> bool:
    """Whether Claude Code made the span."""
    return span.scope.startswith("com.anthropic.claude_code")


def read(span: Span) -> Facts:
    """The facts of such a span, by its `span.type`."""
    get = span.attributes.get
    facts = genai.read(span, "claude_code")
    facts.tokens = facts.aggregate = NO_TOKENS
    kind = get("span.type")
    if kind == "interaction":
        facts.kind, facts.agent, facts.names_agent = "agent", "claude_code", False
        asked = string(get("user_prompt"))
        facts.input = Content(asked, "input") if asked and asked != _REDACTED else None
    elif kind == "llm_request":
        facts.kind, facts.agent = "llm", None
        facts.tokens = _tokens(span)
        facts.model = string(get("model")) or string(get("gen_ai.request.model"))
        facts.response_id = string(get("request_id"))
    elif kind == "tool":
        _read_tool(span, facts)
    elif kind == "tool.execution":
        facts.kind, facts.tool_name = "tool", None
        facts.tool_id = string(get("tool_use_id"))
        facts.tool_error = string(get("error")) if get("success") is False else None
    else:
        facts.kind = "other"
    return facts


def _tokens(span: Span) -> Tokens:
    """As Anthropic's API says them: the input without what the cache gave."""
    get = span.attributes.get
    counts = {"input_tokens": get("input_tokens"), "output_tokens": get("output_tokens")}
    return usage.read_usage_object(
        {**counts, "cache_read_input_tokens": get("cache_read_tokens") or None}
    )


def _read_tool(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.kind = "tool"
    facts.tool_name = facts.tool_name or string(get("tool_name"))
    facts.tool_id = facts.tool_id or string(get("tool_use_id"))
    if facts.arguments is None:
        facts.arguments = arguments_of(get("tool_input"))
    for event in span.events:
        if event.name == "tool.output" and facts.result is None:
            facts.result = event.attributes.get("output")
