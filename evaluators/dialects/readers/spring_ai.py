"""Spring AI: the conventions on a chat model's span, `spring.ai.*` on those of its client, advisors and tools."""

from __future__ import annotations

from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

MARK = "spring.ai.kind"
_TOOLS = "spring.ai.model.request.tool.names"
_KINDS: dict[str, Kind] = {"chat_client": "agent", "tool_call": "tool"}


def speaks(span: Span) -> bool:
    """Whether Spring AI made the span; its chat models' say so only where tools were offered, or by Spring's scope."""
    attributes = span.attributes
    if MARK in attributes or _TOOLS in attributes:
        return True
    return span.scope == "org.springframework.boot" and genai.speaks(span)


def read(span: Span) -> Facts:
    """The facts of a Spring AI observation. Micrometer writes every value as a text."""
    get = span.attributes.get
    said = string(get(MARK))
    if said is None:
        facts = genai.read(span, "spring_ai")
        facts.input = _texts(span, "gen_ai.prompt", "user") or facts.input
        facts.output = _texts(span, "gen_ai.completion", "assistant") or facts.output
        if facts.definitions is None and _TOOLS in span.attributes:
            facts.definitions = Content(get(_TOOLS), "input")
        return facts
    facts = Facts(span=span, dialect="spring_ai", kind=_KINDS.get(said, "other"))
    if facts.kind == "tool":
        facts.tool_name = string(get("spring.ai.tool.definition.name"))
        facts.tool_name = facts.tool_name or genai.tool_in_name(span.name)
        facts.tool_id = string(get("spring.ai.tool.call.id"))
        facts.arguments = arguments_of(get("spring.ai.tool.call.arguments"))
        facts.result = outcome_of(get("spring.ai.tool.call.result")).result
        schema = unwrap(get("spring.ai.tool.definition.schema"))
        if isinstance(schema, dict):
            text = get("spring.ai.tool.definition.description")
            own: JSON = {
                "name": facts.tool_name,
                "description": text,
                "parameters": as_dict(schema),
            }
            facts.definitions = Content([own], "input")
    elif facts.kind == "agent":
        facts.input = _texts(span, "gen_ai.prompt", "user")
        if facts.input is None and "spring.ai.chat.client.user.text" in span.attributes:
            facts.input = Content(get("spring.ai.chat.client.user.text"), "input")
        facts.output = _texts(span, "gen_ai.completion", "assistant")
        if "spring.ai.chat.client.tool.names" in span.attributes:
            facts.definitions = Content(get("spring.ai.chat.client.tool.names"), "input")
    return facts


def _texts(span: Span, key: str, role: str) -> Content | None:
    """A list of texts, one per message, of which the last is this side's own."""
    texts = [text for text in as_list(unwrap(span.attributes.get(key))) if isinstance(text, str)]
    if not texts:
        return None
    side = "input" if role == "user" else "output"
    return Content([{"role": role, "content": text} for text in texts], side)
