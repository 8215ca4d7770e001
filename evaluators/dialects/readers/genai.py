"""The OTel GenAI conventions: messages, tools and usage as span attributes, in all their versions.

Every other dialect is completed from here, since most of them carry some `gen_ai.*` attributes beside their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts, Kind
from evaluators.dialects.content.sessions import ONLY_OF, SESSION, USER
from evaluators.dialects.content.tools import arguments_of, outcome_of
from evaluators.dialects.decoding.decode import ask, names_of
from evaluators.dialects.decoding.key_sets import Among, Either, Prefix, unflatten
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import has
from evaluators.dialects.fields import row, token_rows
from evaluators.dialects.readers import genai_events
from evaluators.model import JSON, Span

_KINDS: dict[str, Kind] = {
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "completion": "llm",
    "completions": "llm",
    "chat.completions": "llm",
    "chat_completion": "llm",
    "chat_completions": "llm",
    "chat.completion": "llm",
    "streaming_chat": "llm",
    "message": "llm",
    "messages": "llm",
    "responses": "llm",
    "response": "llm",
    "generate": "llm",
    "model_generation": "llm",
    "invoke_model": "llm",
    "converse": "llm",
    "converse_stream": "llm",
    "acompletion": "llm",  # litellm names the call's type
    "atext_completion": "llm",
    "aresponses": "llm",
    "anthropic_messages": "llm",
    "agenerate_content": "llm",
    "process_thread_run": "llm",  # Azure AI agents: the whole run, with its messages as events
    "execute_tool": "tool",
    "tool": "tool",
    "tool_call": "tool",
    "call_tool": "tool",
    "invoke_agent": "agent",
    "agent": "agent",
    "agent_run": "agent",
    "run_agent": "agent",
    "invoke_swarm": "agent",
    "invoke_multiagent": "agent",
    "handoff": "handoff",
    "goto": "handoff",
    "transfer": "handoff",
}
_INPUT = Among(
    "gen_ai.input.messages",
    "gen_ai.input_messages",
    "gen_ai.prompt",
    "gen_ai.input",
    "gen_ai.request.messages",
    "input.messages",
    "mastra.agent_run.input",
    "mastra.workflow_run.input",
)
_OUTPUT = Among(
    "gen_ai.output.messages",
    "gen_ai.output_messages",
    "gen_ai.completion",
    "gen_ai.output",
    "output.messages",
    "mastra.agent_run.output",
    "mastra.workflow_run.output",
)
_DEFINITIONS = Among(
    "gen_ai.tool.definitions",
    "gen_ai.request.tools",
    "gen_ai.request.available_tools",
    "gen_ai.tools",
    "gen_ai.agent.tools",
)
_ANSWER = Among("gen_ai.response.text", "gen_ai.response.tool_calls")
"""Sentry's SDKs: the answer's texts and calls apart."""
_SIDES = Among(*_INPUT, *_OUTPUT, *_ANSWER)
_WORTH = Among(*_SIDES, "gen_ai.tool.name", "gen_ai.system_instructions", *_DEFINITIONS)
_ARGUMENTS = Among(
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.arguments",
    "gen_ai.tool.input",
    "gen_ai.tool.call.input",
    "tool.arguments",
    "tool.input",
)
_RESULT = Among(
    "gen_ai.tool.call.result",
    "gen_ai.tool.result",
    "gen_ai.tool.output",
    "gen_ai.tool.message",
    "gen_ai.tool.call.output",
    "tool.result",
    "tool.output",
)
_STATUS = Among("gen_ai.tool.status", "tool.status")
_FUNCTION = Prefix("code.function.")
_SCHEMA = "gen_ai.tool.json_schema"
_TOOL_EXTRAS = Either(_STATUS, _FUNCTION, Among("error.type", _SCHEMA))
_PARAMETERS = "code.function.parameters."
_KERNEL_FUNCTIONS = "sk.available_functions"
"""Semantic Kernel: the names of the functions offered, on the loop around the model calls."""
_MARKS = Among(
    "gen_ai.operation.name",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.tool.name",
    "gen_ai.agent.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.prompt",
    "gen_ai.completion",
    "gen_ai.system",
    "gen_ai.provider.name",
    _KERNEL_FUNCTIONS,
)


SPEAKS = has(*_MARKS)
"""The span carries attributes of the conventions at all."""


def speaks(span: Span) -> bool:
    """Whether `SPEAKS` holds for the span, remembered for its keys."""
    return bool(ask(span.attributes, _MARKS))


def has_content(span: Span) -> bool:
    """Whether a span that is neither call nor agent still carries a tool's name or a conversation."""
    return bool(ask(span.attributes, _WORTH))


def read(span: Span, dialect: str = "genai") -> Facts:
    """The facts of a span that follows the conventions."""
    attributes = span.attributes
    kind = kind_of(span)
    facts = Facts(span=span, dialect=dialect, kind=kind)
    facts.agent = string(attributes.get("gen_ai.agent.name"))
    if kind in ("tool", "handoff"):
        _read_tool(span, facts)
        return facts
    if kind == "agent":
        facts.agent, facts.names_agent = _agent_name(span)
        facts.aggregate = usage.read_tokens(attributes, usage.AGGREGATE)
    own = usage.read_genai_tokens(attributes)
    if kind == "llm":
        facts.tokens = own
        facts.cost = usage.read_cost(attributes)
        facts.model = string(attributes.get("gen_ai.response.model")) or string(
            attributes.get("gen_ai.request.model")
        )
        facts.response_id = string(attributes.get("gen_ai.response.id"))
    elif facts.aggregate is NO_TOKENS:
        facts.aggregate = own
    _read_content(span, facts)
    return facts


def kind_of(span: Span) -> Kind:
    """The kind by `gen_ai.operation.name`, else by attributes that only one kind of span carries."""
    attributes = span.attributes
    operation = string(attributes.get("gen_ai.operation.name"))
    if operation is not None:
        return _KINDS.get(operation) or _KINDS.get(operation.lower(), "other")
    if "gen_ai.tool.name" in attributes:
        return "tool"
    if attributes.get("llm.request.type") in ("chat", "completion"):
        return "llm"
    if "gen_ai.request.model" in attributes and not attributes_are_empty(attributes):
        return "llm"
    return "other"


_OF_A_CALL = Among(
    "gen_ai.response.model",
    "gen_ai.response.id",
    "gen_ai.output.messages",
    "gen_ai.completion",
    "gen_ai.completion.0.content",
    "gen_ai.completion.0.role",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "gen_ai.prompt.0.content",
)


def attributes_are_empty(attributes: Mapping[str, JSON]) -> bool:
    """Whether no attribute shows that the model was really called."""
    return not ask(attributes, _OF_A_CALL)


def _agent_name(span: Span) -> tuple[str | None, bool]:
    name = string(span.attributes.get("gen_ai.agent.name"))
    if name is not None:
        return name, True
    for prefix in ("invoke_agent ", "agent_run ", "agent "):
        if span.name.startswith(prefix):
            return span.name.removeprefix(prefix).strip(" []"), False
    return span.name or None, False


def _read_tool(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    facts.tool_name = string(attributes.get("gen_ai.tool.name")) or tool_in_span_name(span)
    facts.tool_id = string(attributes.get("gen_ai.tool.call.id")) or string(
        attributes.get("tool_call.id")
    )
    facts.arguments = arguments_of(_first(attributes, _ARGUMENTS))
    outcome = outcome_of(_first(attributes, _RESULT))
    facts.result = outcome.result
    facts.tool_id = facts.tool_id or outcome.id
    facts.tool_error = "error" if outcome.is_error else None
    if ask(attributes, _TOOL_EXTRAS):
        _read_tool_extras(attributes, facts)
    if span.events:
        genai_events.read_tool(span, facts)


def _read_tool_extras(attributes: Mapping[str, JSON], facts: Facts) -> None:
    if ask(attributes, _FUNCTION):
        _read_function(attributes, facts)
    if any(attributes.get(key) == "error" for key in ask(attributes, _STATUS)):
        facts.tool_error = "error"
    elif facts.tool_error is None and "error.type" in attributes:
        facts.tool_error = "error" if facts.result else string(attributes.get("error.type"))
    if facts.tool_name and _SCHEMA in attributes:
        _read_definition(attributes, facts)


def _read_function(attributes: Mapping[str, JSON], facts: Facts) -> None:
    """Google's GenAI instrumentation before 0.7: every parameter of the tool's function by itself."""
    if facts.arguments is None:
        names = [n for n in names_of(attributes) if n.startswith(_PARAMETERS)]
        arguments = {
            name.removeprefix(_PARAMETERS).removesuffix(".value"): unwrap(attributes.get(name))
            for name in sorted(names)
            if name.endswith(".value")
        }
        facts.arguments = arguments or None
    if facts.result is None:
        facts.result = attributes.get("code.function.return.value")


def _read_definition(attributes: Mapping[str, JSON], facts: Facts) -> None:
    """The tool's own definition, when its span has all of it."""
    definition = {
        "name": facts.tool_name,
        "description": attributes.get("gen_ai.tool.description"),
        "parameters": unwrap(attributes.get(_SCHEMA)),
    }
    if definition["description"] and definition["parameters"]:
        facts.definitions = Content([definition], "input")


def tool_in_span_name(span: Span) -> str | None:
    """The tool named in a span name like `execute_tool get_weather`."""
    head, _, tail = span.name.partition(" ")
    return (
        tail.strip("[]") or None
        if head in ("execute_tool", "tool_call", "tool.execute", "tool", "running")
        else None
    )


def _read_content(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    if facts.kind in ("llm", "agent") or ask(attributes, _SIDES):
        facts.input = _content(span, _INPUT, _PROMPT)
        facts.output = _content(span, _OUTPUT, _COMPLETION)
        if facts.output is None and ask(attributes, _ANSWER):
            facts.output = Content(lambda: _answer(attributes), "output")
    facts.system = attributes.get("gen_ai.system_instructions")
    if ask(attributes, _OFFERS):
        facts.definitions = _offered(attributes)
    if span.events:
        genai_events.read_conversation(span, facts)


def _offered(attributes: Mapping[str, JSON]) -> Content | None:
    """The tools offered: as the conventions have them, flattened by OpenLLMetry, or Semantic Kernel's names."""
    definitions = ask(attributes, _DEFINITIONS)
    if definitions:
        return Content(attributes.get(definitions[0]), "input")
    if ask(attributes, _FLAT_REQUEST) and ask(attributes, _FUNCTIONS):
        names = names_of(attributes)
        return Content(lambda: unflatten(names, attributes.get, _FUNCTIONS.text), "input")
    if _KERNEL_FUNCTIONS in attributes:
        return Content(_comma_separated(attributes.get(_KERNEL_FUNCTIONS)), "input")
    return None


def _comma_separated(value: JSON) -> JSON:
    return [name for name in value.split(",") if name] if isinstance(value, str) else None


_PROMPT = Prefix("gen_ai.prompt.")
_COMPLETION = Prefix("gen_ai.completion.")
_FUNCTIONS = Prefix("llm.request.functions.")
"""Flattened lists; their first items may have been evicted."""
_FLAT_REQUEST = Among("llm.request.type", "llm.request.functions.0.name")
_OFFERS = Either(_DEFINITIONS, _FLAT_REQUEST, Among(_KERNEL_FUNCTIONS))
_CALLS = Among("gen_ai.completion.0.function_call.name")
"""LiteLLM writes the calls of an answer here and leaves them out of the messages."""


def _content(span: Span, keys: Among, flat: Prefix) -> Content | None:
    side = "input" if keys is _INPUT else "output"
    attributes = span.attributes
    there = ask(attributes, keys)
    if there and not (span.scope == "litellm" and side == "output" and ask(attributes, _CALLS)):
        return Content(attributes.get(there[0]), side)
    if ask(attributes, flat):
        return Content(lambda: _flat(span, flat.text), side)
    return None


def _answer(attributes: Mapping[str, JSON]) -> JSON:
    """The one message of an answer whose texts and calls stand apart; the texts are one or a list."""
    text, calls = (unwrap(attributes.get(key)) for key in _ANSWER)
    texts = as_list(text) or [text]
    return [{"role": "assistant", "content": [t for t in texts if t], "tool_calls": calls}]


def _flat(span: Span, prefix: str) -> JSON:
    """OpenLLMetry's flat messages; an empty answer is written as the literal `""`."""
    items = unflatten(names_of(span.attributes), span.attributes.get, prefix)
    for item in items:
        message = as_dict(item)
        if message.get("content") == '""':
            message["content"] = None
        if message and "role" not in message and prefix == "gen_ai.completion.":
            message["role"] = "assistant"
    return items


def _first(attributes: Mapping[str, JSON], keys: Among) -> JSON:
    there = ask(attributes, keys)
    return attributes.get(there[0]) if there else None


ROWS = (
    row("input", "model call", *_INPUT, "gen_ai.prompt.N.content"),
    row("output", "model call", *_OUTPUT, "gen_ai.completion.N.content", "gen_ai.response.text"),
    row("system", "model call", "gen_ai.system_instructions"),
    row("tools offered", "model call", *_DEFINITIONS),
    row("tool name", "tool", "gen_ai.tool.name"),
    row("tool call id", "tool", "gen_ai.tool.call.id", "tool_call.id"),
    row("arguments", "tool", *_ARGUMENTS, "code.function.parameters.N.value"),
    row("result", "tool", *_RESULT, "code.function.return.value"),
    *token_rows(usage.GENAI),
    row("cost", "model call", *usage.COSTS),
    row("model", "model call", "gen_ai.response.model", "gen_ai.request.model"),
    row("agent", "agent", "gen_ai.agent.name"),
    row("session", "any", *(key for key in SESSION if key not in ONLY_OF)),
    row("user", "any", *USER),
)
"""Every dialect may be completed from these keys."""
