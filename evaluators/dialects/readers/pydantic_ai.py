"""pydantic-ai: the conventions, plus `final_result`, `all_messages`, and the older `events` and `tool_arguments`."""

from __future__ import annotations

from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

_ALL = ("pydantic_ai.all_messages", "all_messages_events", "all_messages")
_MARKS = frozenset(
    {*_ALL, "final_result", "tool_arguments", "tool_response", "model_request_parameters"}
)
_RETRY = "\n\nFix the errors and try again."


def speaks(span: Span) -> bool:
    """Whether pydantic-ai made the span."""
    return span.scope.startswith("pydantic-ai") or not _MARKS.isdisjoint(span.attributes)


def read(span: Span) -> Facts:
    """The facts of a pydantic-ai span."""
    attributes = span.attributes
    facts = genai.read(span, "pydantic_ai")
    if "final_result" in attributes or any(key in attributes for key in _ALL):
        facts.kind = "agent"
    if facts.kind == "agent":
        _read_run(span, facts)
    elif facts.kind == "tool":
        if facts.arguments is None:
            facts.arguments = arguments_of(attributes.get("tool_arguments"))
        if facts.result is None:
            facts.result = outcome_of(attributes.get("tool_response")).result
    elif facts.kind == "llm":
        _read_call(span, facts)
    return facts


def _read_run(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    named = string(get("gen_ai.agent.name")) or string(get("agent_name"))
    facts.agent, facts.names_agent = named or facts.agent, named is not None
    for key in _ALL:
        if key in span.attributes:
            facts.input = facts.input or Content(get(key), "input")
            facts.output = facts.output or Content(get(key), "output")
            break
    final = string(get("final_result"))
    if final is not None:
        facts.output = Content([{"role": "assistant", "content": [{"text": final}]}], "output")


def _read_call(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    if facts.input is None and "events" in span.attributes:
        facts.input = Content(lambda: _events(get("events"), chosen=False), "input")
        facts.output = Content(lambda: _events(get("events"), chosen=True), "output")
    if facts.definitions is None and "model_request_parameters" in span.attributes:
        facts.definitions = Content(get("model_request_parameters"), "input")


def _events(value: JSON, *, chosen: bool) -> JSON:
    """The events of one call: `gen_ai.choice` is the answer, everything else went in."""
    events = [as_dict(event) for event in as_list(unwrap(value))]
    return [_marked(e) for e in events if (e.get("event.name") == "gen_ai.choice") is chosen]


def _marked(event: dict[str, JSON]) -> dict[str, JSON]:
    """The words of `RetryPromptPart` are all that tells a failed tool in versions before 0.1."""
    content = event.get("content")
    failed = isinstance(content, str) and content.endswith(_RETRY) and event.get("role") == "tool"
    return {**event, "is_error": True} if failed else event
