"""openlit's own spans: functions under `@openlit.trace`, and `openlit.start_trace`. Its instrumentations speak genai."""

from __future__ import annotations

from evaluators.dialects import genai
from evaluators.dialects.content import Content
from evaluators.dialects.facts import Facts
from evaluators.dialects.values import as_dict, as_list, string, unwrap
from evaluators.model import JSON, Span

_EMPTY = (None, "", "()", "{}")


def speaks(span: Span) -> bool:
    """Whether openlit's decorator or context manager made the span."""
    return span.scope == "openlit"


def read(span: Span) -> Facts:
    """The facts of a traced function: what it was called with and gave back. It may be an agent, a step or a tool."""
    get = span.attributes.get
    facts = genai.read(span, "openlit")
    if facts.kind != "other":
        return facts
    facts.tool_name = string(span.name)
    facts.arguments = _given(get("function.kwargs"))
    facts.result = get("gen_ai.output.messages")
    given = facts.arguments if facts.arguments is not None else _given(get("function.args"))
    if facts.input is None and given is not None:
        facts.input = Content(given, "input")
    return facts


def _given(value: JSON) -> JSON:
    """Arguments, shown as a Python repr."""
    if value in _EMPTY:
        return None
    inner = unwrap(value)
    if isinstance(inner, str) and inner.startswith("("):
        inner = unwrap(f"[{inner[1:-1]}]")
    return as_dict(inner) or as_list(inner) or None
