"""Haystack's own tracing: `haystack.pipeline.*`, `haystack.component.*` and `haystack.agent.*`.

Content is there when HAYSTACK_CONTENT_TRACING_ENABLED is set. The kind of a component is the end of its class name.
"""

from functools import partial

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.blocks import read_content
from evaluators.dialects.content.facts import NO_TOKENS, Facts, Kind, plain_text
from evaluators.dialects.content.messages import Side
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, Sample, has
from evaluators.model import JSON

_COMPONENT = "haystack.component.type"
_AGENT = "haystack.agent."
_PIPELINE = "haystack.pipeline."
_TOOL = "haystack.tool.name"
_LLM = "haystack.agent.step.llm."
"""Version 3: a span of each model call and of each tool call of an agent's step."""
_STEP_TOOL = "haystack.agent.step.tool."


def _kind(facts: Facts) -> Kind:
    attributes = facts.span.attributes
    component = string(attributes.get(_COMPONENT))
    if component is not None:
        if component.endswith("Generator"):
            return "llm"
        return "agent" if component.endswith("Agent") else "other"
    if f"{_AGENT}max_steps" in attributes:
        return "agent"
    if _TOOL in attributes:
        return "tool"
    return "llm" if f"{_LLM}input" in attributes else "other"


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    if facts.kind == "llm":
        _read_meta(facts, as_dict(unwrap(get("haystack.component.output") or get(f"{_LLM}output"))))
    elif get(_COMPONENT) == "ToolInvoker":
        facts.input = facts.output = None
        _read_invoker(facts, get("haystack.component.output"))


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


def _read_invoker(facts: Facts, output: JSON) -> None:
    """One span for all calls of a step: it is a call's span when it made just one, else messages have the calls."""
    messages = [
        as_dict(message) for message in as_list(as_dict(unwrap(output)).get("tool_messages"))
    ]
    contents = [message.get("content") or message.get("_content") for message in messages]
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
    """Serialised tools: the definition is in `data`; a toolset holds several."""
    definitions: list[JSON] = []
    value = unwrap(value)
    for tool in as_list(value) if isinstance(value, list) else [value]:
        data = as_dict(as_dict(tool).get("data")) or as_dict(tool)
        definitions += as_list(_tools(data["tools"])) if "tools" in data else [data] if data else []
    return definitions


def _tools_beside(request: JSON) -> JSON:
    return _tools(as_dict(unwrap(request)).get("tools"))


def _of_pipeline(value: JSON, side: Side) -> JSON:
    parts = [_messages(part, side) for part in as_dict(unwrap(value)).values()]
    conversations = [as_list(part) for part in parts if isinstance(part, list)]
    if len(conversations) == 1:
        return conversations[0]
    texts = {text for part in parts if (text := plain_text(part, side))}
    return texts.pop() if len(texts) == 1 else None


def _sides(*stems: str) -> tuple[fields.Field, ...]:
    return (
        fields.input_from(
            *(f"{stem}input" for stem in stems), later=partial(_messages, side="input")
        ),
        fields.output_from(
            *(f"{stem}output" for stem in stems), later=partial(_messages, side="output")
        ),
    )


HAYSTACK = Dialect(
    name="haystack",
    speaks=has(
        _COMPONENT,
        f"{_AGENT}max_steps",
        f"{_PIPELINE}max_runs_per_component",
        f"{_PIPELINE}input_data",
        _TOOL,
        f"{_LLM}input",
    ),
    kind=_kind,
    fields={
        "llm": (
            *_sides("haystack.component.", _LLM),
            fields.definitions("haystack.component.input", f"{_LLM}input", later=_tools_beside),
        ),
        "tool": (
            fields.tool_name(_TOOL),
            fields.arguments(f"{_STEP_TOOL}input"),
            fields.result(f"{_STEP_TOOL}output"),
        ),
        "agent": (
            *_sides("haystack.component.", _AGENT),
            fields.definitions(f"{_AGENT}tools", later=_tools),
            fields.agent("haystack.component.name"),
        ),
        "other": (
            *_sides("haystack.component."),
            fields.input_from(f"{_PIPELINE}input_data", later=partial(_of_pipeline, side="input")),
            fields.output_from(
                f"{_PIPELINE}output_data", later=partial(_of_pipeline, side="output")
            ),
        ),
    },
    finish=_finish,
    advice="""
        content: HAYSTACK_CONTENT_TRACING_ENABLED=true
            set before haystack is imported
            haystack/tracing/tracer.py of the package haystack-ai
    """,
    sample=Sample(
        spans={
            "model call": {"haystack.component.type": "OpenAIChatGenerator"},
            "tool": {"haystack.tool.name": "some_tool"},
            "agent": {"haystack.component.type": "Agent"},
            "step": {"haystack.component.type": "PromptBuilder"},
        },
    ),
)
