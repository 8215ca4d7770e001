"""Claude Code and the Claude Agent SDK: `claude_code.interaction`, `.llm_request`, `.tool`.

Tokens stand under bare names, the question in `user_prompt`, a tool's result in an event. That a tool failed stands on
the span of its execution, inside the tool's own. Answers and the arguments of MCP tools are not exported.
"""

from __future__ import annotations

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Facts, Kind
from evaluators.dialects.decoding.values import string
from evaluators.dialects.dialect import CONTENT, Advice, Dialect, scope
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

_KINDS: dict[str, Kind] = {
    "interaction": "agent",
    "llm_request": "llm",
    "tool": "tool",
    "tool.execution": "tool",
}


def _read_conventions(span: Span, dialect: str) -> Facts:
    facts = genai.read(span, dialect)
    facts.tokens = facts.aggregate = NO_TOKENS  # its own counts are what Anthropic's API says
    return facts


def _kind(facts: Facts) -> Kind:
    return _KINDS.get(str(facts.span.attributes.get("span.type")), "other")


def _question(value: JSON) -> JSON:
    """None where the text was left out."""
    return None if value == "<REDACTED>" else string(value)


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    if facts.kind == "agent":
        facts.agent, facts.names_agent = "claude_code", False
    elif facts.kind == "llm":
        facts.agent = None
        facts.tokens = usage.read_usage_object(
            {
                "input_tokens": get("input_tokens"),
                "output_tokens": get("output_tokens"),
                "cache_read_input_tokens": get("cache_read_tokens") or None,
            }
        )
    elif get("span.type") == "tool.execution":
        facts.tool_name, facts.tool_id = None, string(get("tool_use_id"))
        facts.tool_error = string(get("error")) if get("success") is False else None
    elif facts.kind == "tool":
        for event in facts.span.events:
            if event.name == "tool.output" and facts.result is None:
                facts.result = event.attributes.get("output")


CLAUDE_CODE = Dialect(
    name="claude_code",
    speaks=scope("com.anthropic.claude_code"),
    base=_read_conventions,
    kind=_kind,
    fields={
        "llm": (
            fields.over(fields.model("model", "gen_ai.request.model")),
            fields.over(fields.response_id("request_id")),
        ),
        "tool": (
            fields.tool_name("tool_name"),
            fields.tool_id("tool_use_id"),
            fields.arguments("tool_input"),
        ),
        "agent": (fields.over(fields.input_from("user_prompt", read=_question)),),
    },
    finish=_finish,
    reads=(
        fields.row("result", "tool", "event tool.output: output"),
        fields.row("input tokens", "model call", "input_tokens"),
        fields.row("output tokens", "model call", "output_tokens"),
        fields.row("cached tokens", "model call", "cache_read_tokens"),
    ),
    scopes=("com.anthropic.claude_code",),
    advice=(
        Advice(
            lacks=CONTENT,
            setting="OTEL_LOG_USER_PROMPTS=1 OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1",
            note="questions and tool results; answers and the arguments of MCP tools are never exported",
            source="recordings of claude-agent-sdk 0.2.184",
        ),
    ),
)
