"""Haystack's own tracing: `haystack.pipeline.*`, `haystack.component.*` and `haystack.agent.*`.

Content is there when HAYSTACK_CONTENT_TRACING_ENABLED is set. What a component is, its class name says.
"""

from __future__ import annotations

from evaluators.dialects.advice import CONTENT, Advice
from evaluators.dialects.content import usage
from evaluators.dialects.content.blocks import read_content
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import NO_TOKENS, Facts
from evaluators.dialects.content.messages import Side
from evaluators.dialects.content.plain_text import plain_text
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.key_sets import Among
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, has
from evaluators.dialects.fields import row
from evaluators.model import JSON, Span

_COMPONENT = "haystack.component.type"
_AGENT = "haystack.agent."
_PIPELINE = "haystack.pipeline."
_TOOL = "haystack.tool."
_LLM = "haystack.agent.step.llm."
"""Version 3: a span of each model call and of each tool call of an agent's step."""
_STEP_TOOL = "haystack.agent.step.tool."
_MARKS = Among(
    _COMPONENT,
    f"{_AGENT}max_steps",
    f"{_PIPELINE}max_runs_per_component",
    f"{_PIPELINE}input_data",
    f"{_TOOL}name",
    f"{_LLM}input",
)


def _read(span: Span) -> Facts:
    """The facts of a run of a pipeline, a component or an agent."""
    get = span.attributes.get
    facts = Facts(span=span, dialect="haystack")
    component = string(get(_COMPONENT))
    if component is not None:
        _read_component(span, facts, component)
    elif f"{_AGENT}max_steps" in span.attributes:
        facts.kind = "agent"
        _read_sides(facts, get(f"{_AGENT}input"), get(f"{_AGENT}output"))
        tools = get(f"{_AGENT}tools")
        facts.definitions = Content(lambda: _tools(tools), "input")
    elif f"{_TOOL}name" in span.attributes:
        _read_tool(span, facts)
    elif f"{_LLM}input" in span.attributes:
        _read_generator(facts, get(f"{_LLM}input"), get(f"{_LLM}output"))
    else:
        _read_pipeline(span, facts)
    return facts


def _read_component(span: Span, facts: Facts, component: str) -> None:
    get = span.attributes.get
    given, came = get("haystack.component.input"), get("haystack.component.output")
    if component == "ToolInvoker":
        _read_invoker(facts, came)
        return
    if component.endswith("Generator"):
        _read_generator(facts, given, came)
        return
    _read_sides(facts, given, came)
    if component.endswith("Agent"):
        facts.kind, facts.agent = "agent", string(get("haystack.component.name"))
        facts.names_agent = facts.agent is not None


def _read_generator(facts: Facts, given: JSON, came: JSON) -> None:
    facts.kind = "llm"
    _read_sides(facts, given, came)
    facts.definitions = Content(lambda: _tools(as_dict(unwrap(given)).get("tools")), "input")
    _read_meta(facts, as_dict(unwrap(came)))


def _read_tool(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.kind, facts.tool_name = "tool", string(get(f"{_TOOL}name"))
    facts.arguments = arguments_of(get(f"{_STEP_TOOL}input"))
    facts.result = outcome_of(get(f"{_STEP_TOOL}output")).result
    if get(f"{_TOOL}error"):
        said = as_dict(unwrap(facts.result)).get("error")
        facts.tool_error = string(said) or "error"


def _read_sides(facts: Facts, given: JSON, came: JSON) -> None:
    if given is not None:
        facts.input = Content(lambda: _messages(given, "input"), "input")
    if came is not None:
        facts.output = Content(lambda: _messages(came, "output"), "output")


def _messages(value: JSON, side: Side) -> JSON:
    """The chat messages of a component's input or output; a text generator's prompt and replies as such."""
    item = as_dict(unwrap(value))
    for key in ("messages",) if side == "input" else ("replies", "messages"):
        found = as_list(item.get(key))
        if found and all(isinstance(message, dict) for message in found):
            return [_message(as_dict(message)) for message in found]
        if found and isinstance(found[-1], str):
            return [{"role": "assistant", "content": found[-1]}]
    prompt = item.get("prompt") if side == "input" else None
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else item


def _message(message: dict[str, JSON]) -> JSON:
    """Versions before 2.13 wrote the fields with an underscore."""
    if "_role" not in message:
        return message
    return {key.removeprefix("_"): value for key, value in message.items()}


def _read_meta(facts: Facts, answer: dict[str, JSON]) -> None:
    """Counts and model of each reply; a text generator has them beside the replies."""
    replies = [as_dict(reply) for reply in as_list(answer.get("replies"))]
    metas = [as_dict(reply.get("meta") or reply.get("_meta")) for reply in replies]
    for meta in (*metas, *map(as_dict, as_list(answer.get("meta")))):
        facts.model = facts.model or string(meta.get("model"))
        if facts.tokens is NO_TOKENS:
            facts.tokens = usage.read_usage_object(meta.get("usage"))


def _read_invoker(facts: Facts, came: JSON) -> None:
    """One span for all calls of a step: it stands for a call when it made just one, else messages tell."""
    said = [as_dict(message) for message in as_list(as_dict(unwrap(came)).get("tool_messages"))]
    contents = [message.get("content") or message.get("_content") for message in said]
    results = [result for content in contents for result in read_content(content).results]
    origins = [
        as_dict(as_dict(as_dict(block).get("tool_call_result")).get("origin"))
        for content in contents
        for block in as_list(content)
    ]
    if len(results) != 1 or len(origins) != 1:
        return
    facts.kind, facts.tool_name = "tool", results[0].name
    facts.tool_id, facts.result = results[0].id, results[0].content
    facts.arguments = origins[0].get("arguments")
    facts.tool_error = "error" if results[0].is_error else None


def _tools(value: JSON) -> JSON:
    """Serialised tools: the definition stands in `data`; a toolset holds several."""
    found: list[JSON] = []
    value = unwrap(value)
    for tool in as_list(value) if isinstance(value, list) else [value]:
        data = as_dict(as_dict(tool).get("data")) or as_dict(tool)
        found += as_list(_tools(data["tools"])) if "tools" in data else [data] if data else []
    return found


def _read_pipeline(span: Span, facts: Facts) -> None:
    """What went into each component; the question where all that were given a text were given the same."""
    get = span.attributes.get
    given, came = get(f"{_PIPELINE}input_data"), get(f"{_PIPELINE}output_data")
    facts.input = Content(lambda: _of_pipeline(given, "input"), "input")
    facts.output = Content(lambda: _of_pipeline(came, "output"), "output")


def _of_pipeline(value: JSON, side: Side) -> JSON:
    parts = [_messages(part, side) for part in as_dict(unwrap(value)).values()]
    conversations = [as_list(part) for part in parts if isinstance(part, list)]
    if len(conversations) == 1:
        return conversations[0]
    texts = {text for part in parts if (text := plain_text(part, side))}
    return texts.pop() if len(texts) == 1 else None


HAYSTACK = Dialect(
    name="haystack",
    speaks=has(*_MARKS),
    read=_read,
    reads=(
        row("input", "model call", "haystack.component.input"),
        row("output", "model call", "haystack.component.output"),
        row("tools offered", "model call", "haystack.component.input"),
        row("input", "agent", "haystack.component.input"),
        row("output", "agent", "haystack.component.output"),
        row("agent", "agent", "haystack.component.name"),
        row("tool name", "tool", "haystack.tool.name"),
        row("arguments", "tool", "haystack.agent.step.tool.input"),
        row("result", "tool", "haystack.agent.step.tool.output"),
    ),
    advice=(
        Advice(
            lacks=CONTENT,
            setting="HAYSTACK_CONTENT_TRACING_ENABLED=true",
            note="set before haystack is imported",
            source="haystack/tracing/tracer.py of the package haystack-ai",
        ),
    ),
)
