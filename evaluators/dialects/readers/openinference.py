"""OpenInference: every `openinference.instrumentation.*` and `@arizeai/openinference-*` package."""

import re

import msgspec

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts, Kind
from evaluators.dialects.content.messages import Side, read_messages
from evaluators.dialects.content.names import stable_name
from evaluators.dialects.content.tools import tools_beside
from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.decoding.key_sets import unflatten
from evaluators.dialects.decoding.values import as_dict, as_list, string, unwrap
from evaluators.dialects.dialect import Dialect, has, sample_by, scope
from evaluators.dialects.fields import row, token_rows
from evaluators.dialects.readers.genai_tools import tool_in_span_name
from evaluators.dialects.readers.openinference_frameworks import (
    GEMINI_HISTORY,
    crew_question,
    crew_role,
    crew_tools,
    dspy_tools,
    expand_dspy,
    gemini_run,
    haystack_run,
    haystack_tokens,
    passed_arguments,
)
from evaluators.model import JSON, Span, Tokens

_HIDE = "OPENINFERENCE_HIDE_"
MARK = "openinference.span.kind"
_KINDS: dict[str, Kind] = {"AGENT": "agent", "LLM": "llm", "TOOL": "tool"}
_SIDES = frozenset({"GUARDRAIL", "EVALUATOR"})
_LANGFUSE_OUTPUT = "langfuse.observation.output"
_FIRST_TOOL = "llm.tools.0.tool.json_schema"
_TOOLS = re.compile(r'"(?:tools|functions)"')
_USAGE = re.compile(r'(?:usage|usage_metadata|usageMetadata|token_usage)\\?":')
_ERROR_MARK = re.compile(r'"(?:is_error": ?true|status": ?"error")')
_SUFFIXES = (
    "._use",
    "._execute_core",
    ".execute_task",
    ".run",
    ".arun",
    ".invoke",
    ".kickoff",
    ".__call__",
    ".forward",
)


def _read(span: Span) -> Facts:
    attributes = span.attributes
    named = str(attributes.get(MARK)).upper()
    kind = _KINDS.get(named, "other")
    if kind == "tool" and span.name.startswith("handoff to "):
        kind = "handoff"
    elif kind == "tool" and span.scope.endswith(".beeai") and "tool.name" not in attributes:
        kind = "other"  # an event of the tool's run, such as its error
    elif kind == "agent" and "tool.name" in attributes and span.scope.endswith("langchain"):
        kind = "tool"  # LangChain's runs are agents as soon as "agent" is in their name
    elif kind == "other" and "llm.model_name" in attributes and span.scope.endswith(".instructor"):
        kind = "llm"  # what it wraps leaves a span only when the provider is instrumented too
    elif kind == "llm" and span.name.endswith("._prepare_chat_with_tools"):
        kind = "other"  # LlamaIndex makes the request ready here, and calls nothing
    facts = Facts(span=span, dialect="openinference", kind=kind, is_side=named in _SIDES)
    if kind == "tool":
        _read_tool(span, facts)
        return facts
    if kind == "agent":
        facts.agent, facts.names_agent = _agent_name(span)
        facts.aggregate = usage.read_tokens(attributes, usage.OPENINFERENCE)
    if kind == "llm":
        facts.tokens = _tokens(span)
        facts.cost = usage.read_cost(attributes)
        facts.model = string(attributes.get("llm.model_name"))
        facts.response_id = _response_id(attributes.get("output.value"))
    _read_content(span, facts)
    if kind == "other" and span.scope.endswith(".haystack") and span.name.startswith("Agent.run"):
        _read_haystack_agent(span, facts)
    return facts


def _read_haystack_agent(span: Span, facts: Facts) -> None:
    """Its model calls leave no spans in newer versions."""
    raw = span.attributes.get("output.value")
    run = haystack_run(raw)
    if run:
        facts.kind, facts.whole_run = "llm", True
        facts.output = Content(run, "output")
        facts.tokens = haystack_tokens(raw, run)


def _tokens(span: Span) -> Tokens:
    """The flattened counts. Anthropic's own answer, where exported, counts its input without cached tokens."""
    attributes = span.attributes
    tokens = usage.read_tokens(attributes, usage.OPENINFERENCE)
    if tokens is NO_TOKENS:
        return _tokens_in_answer(attributes.get("output.value"))
    provider = attributes.get("llm.system") or attributes.get("llm.provider")
    if provider != "anthropic" or not tokens.cached:
        return tokens
    stated = usage.read_usage_object(as_dict(unwrap(attributes.get("output.value"))).get("usage"))
    return tokens if stated.input is None else msgspec.structs.replace(tokens, input=stated.input)


def _tokens_in_answer(raw: JSON) -> Tokens:
    if not isinstance(raw, str) or not _USAGE.search(raw):
        return NO_TOKENS
    return usage.usage_in_answer(unwrap(raw))


def _agent_name(span: Span) -> tuple[str | None, bool]:
    attributes = span.attributes
    # The instrumentation's name may be the same for all agents: `strands_agent`.
    for key in (
        "gen_ai.agent.name",
        "agent.name",
        "agent_name",
        "graph.node.name",
        "graph.node.id",
    ):
        if (name := string(attributes.get(key))) and stable_name(name):
            return name, True
    if span.name == "Task._execute_core" and (role := crew_role(attributes)):
        return role, True
    return plain_name(span.name), False


def plain_name(name: str) -> str | None:
    """A span name without the method that was called."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name or None


def _response_id(value: JSON) -> str | None:
    if not isinstance(value, str) or not value.startswith('{"id"'):
        return None
    return string(value[5:200].lstrip(": ").partition('"')[2].partition('"')[0])


def _read_content(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    names = frozenset(names_of(attributes))
    if facts.kind == "llm":
        facts.input = Content(lambda: _messages(span, names, "input"), "input")
        facts.output = Content(lambda: _messages(span, names, "output"), "output")
        facts.definitions = Content(lambda: _tools(span, names), "input")
        if _LANGFUSE_OUTPUT in names:  # LiteLLM writes the messages whole for Langfuse only
            facts.input = Content(attributes.get("langfuse.observation.input"), "input")
            facts.output = Content(attributes.get(_LANGFUSE_OUTPUT), "output")
        return
    if "input.value" in names:
        facts.input = Content(attributes.get("input.value"), "input")
    if "output.value" in names:
        facts.output = Content(attributes.get("output.value"), "output")
    elif facts.kind == "agent" and any(name.startswith("llm.output_messages.") for name in names):
        facts.output = Content(lambda: _messages(span, names, "output"), "output")
    if "smolagents.tools_names" in names:
        facts.definitions = Content(attributes.get("smolagents.tools_names"), "input")
    if "crew_agents" in names:
        facts.definitions = Content(lambda: crew_tools(attributes), "input")
        if facts.input is None:
            facts.input = Content(lambda: crew_question(attributes), "input")


def _messages(span: Span, names: frozenset[str], side: Side) -> JSON:
    """The flattened messages; where they are missing, the whole request or answer in `<side>.value`."""
    get = span.attributes.get
    raw = get(f"{side}.value")
    if side == "output" and isinstance(raw, str) and GEMINI_HISTORY in raw:
        return gemini_run(raw)
    items = unflatten(names, get, f"llm.{side}_messages.")
    messages = [_message(as_dict(as_dict(item).get("message"))) for item in items]
    if not span.dropped_attributes_count:
        messages = [_with_arguments(message) for message in messages]
    if any(_lost_its_call(message) for message in messages):
        results = [result for m in read_messages(raw, side) for result in m.results]
        complete = any(_is_result(message) and message.get("content") for message in messages)
        if results and (not complete or all(result.id for result in results)):
            return raw
        messages = [{**m, "role": "tool"} if _is_result(m) else m for m in messages]
    if _is_dspy(span):
        messages = expand_dspy(messages)
    if any("content" in message or "tool_calls" in message for message in messages):
        return _with_errors(messages, raw)
    prompts = unflatten(names, get, "llm.prompts." if side == "input" else "llm.choices.")
    if prompts:
        role = "user" if side == "input" else "assistant"
        return [{"role": role, "content": _prompt_text(as_dict(item))} for item in prompts]
    return raw


def _lost_its_call(message: dict[str, JSON]) -> bool:
    if message.get("role") == "user":  # Gemini's may lose all, Anthropic's all but the last one
        return "content" not in message or bool(message.get("tool_call_id"))
    return message.get("role") in ("tool", "function") and not message.get("tool_call_id")


def _is_result(message: dict[str, JSON]) -> bool:
    role = message.get("role")
    return role in ("tool", "function") or (role == "user" and bool(message.get("tool_call_id")))


def _is_dspy(span: Span) -> bool:
    """Whether DSPy may have written the messages: it calls every model through LiteLLM."""
    return span.scope.endswith((".dspy", ".litellm"))


def _with_errors(messages: list[dict[str, JSON]], raw: JSON) -> list[dict[str, JSON]]:
    """Flattening loses the mark of a failed tool result; the request itself still has it."""
    if not isinstance(raw, str) or not _ERROR_MARK.search(raw):
        return messages
    failed = {r.id for m in read_messages(raw, "input") for r in m.results if r.is_error and r.id}
    return [
        {**m, "is_error": True} if string(m.get("tool_call_id")) in failed else m for m in messages
    ]


def _prompt_text(item: dict[str, JSON]) -> JSON:
    for inner in (item, as_dict(item.get("prompt")), as_dict(item.get("completion"))):
        if isinstance(inner.get("text"), str):
            return inner["text"]
    return None


def _message(message: dict[str, JSON]) -> dict[str, JSON]:
    """One flattened message as an object: contents' texts, tool calls without their nesting."""
    item = dict(message)
    contents = [
        as_dict(as_dict(entry).get("message_content"))
        for entry in as_list(item.pop("contents", None))
    ]
    if not item.get("content") and contents:
        item["content"] = [entry for entry in contents if isinstance(entry.get("text"), str)]
    calls = [as_dict(as_dict(entry).get("tool_call")) for entry in as_list(item.get("tool_calls"))]
    if calls:
        item["tool_calls"] = calls
    elif "function_call_name" in item:
        item["tool_calls"] = [
            {
                "name": item["function_call_name"],
                "arguments": item.get("function_call_arguments_json"),
            }
        ]
    return item


def _with_arguments(message: dict[str, JSON]) -> dict[str, JSON]:
    """Flattening leaves out an empty object: a call without arguments is one of a tool that takes none."""
    for call in map(as_dict, as_list(message.get("tool_calls"))):
        function = as_dict(call.get("function"))
        if "name" in function:
            function.setdefault("arguments", "{}")
    return message


def _tools(span: Span, names: frozenset[str]) -> JSON:
    """Offered tools; where they were evicted or never flattened, those in the request itself."""
    get = span.attributes.get
    flat = _FIRST_TOOL in names or span.dropped_attributes_count
    items = unflatten(names, get, "llm.tools.") if flat else []
    schemas = [as_dict(as_dict(item).get("tool")).get("json_schema") for item in items]
    if schemas:
        return [unwrap(schema) for schema in schemas]
    for key in ("llm.invocation_parameters", "input.value"):
        raw = get(key)
        if isinstance(raw, str) and _TOOLS.search(raw) and (beside := tools_beside(raw)):
            return beside
    return dspy_tools(_messages(span, names, "input")) if _is_dspy(span) else None


def _read_tool(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    facts.tool_name = string(attributes.get("tool.name")) or string(
        attributes.get("tool_call.function.name")
    )
    facts.tool_name = facts.tool_name or tool_in_span_name(span) or plain_name(span.name)
    facts.tool_id = string(attributes.get("tool_call.id")) or string(attributes.get("tool.id"))
    arguments = attributes.get("tool_call.function.arguments")
    if arguments is None:
        arguments = attributes.get("input.value")
    if arguments is None and not _is_schema(attributes.get("tool.parameters")):
        arguments = attributes.get("tool.parameters")
    facts.arguments = passed_arguments(span.scope, arguments)
    facts.result = attributes.get("output.value")
    if not _OWN_DEFINITION.isdisjoint(names_of(attributes)):
        facts.definitions = Content(lambda: _own_definition(span, facts), "input")


_OWN_DEFINITION = frozenset({"tool.description", "tool.parameters", "tool.json_schema"})


def _own_definition(span: Span, facts: Facts) -> JSON:
    keys = ("tool.json_schema", "tool.parameters")
    schemas = [unwrap(span.attributes.get(key)) for key in keys]
    parameters = next((schema for schema in schemas if _is_schema(schema)), None)
    if parameters is None and not span.attributes.get("tool.description"):
        return None
    return [
        {
            "name": facts.tool_name,
            "description": span.attributes.get("tool.description"),
            "parameters": parameters,
        }
    ]


def _is_schema(value: JSON) -> bool:
    """Whether `tool.parameters` describes the parameters; some put the arguments there."""
    item = as_dict(unwrap(value))
    if "properties" in item or item.get("type") == "object":
        return True
    return bool(item) and all(
        isinstance(entry, dict) and "type" in entry for entry in item.values()
    )


OPENINFERENCE = Dialect(
    name="openinference",
    speaks=has(MARK) & ~scope("pydantic-ai"),
    completed=True,
    scopes=("@arizeai/openinference",),
    read=_read,
    reads=(
        row("input", "model call", "llm.input_messages.N.message.content", "input.value"),
        row("output", "model call", "llm.output_messages.N.message.content", "output.value"),
        row("tools offered", "model call", "llm.tools.N.tool.json_schema"),
        row("tools offered", "tool", "tool.json_schema", "tool.parameters"),
        row("tools offered", "agent", "smolagents.tools_names"),
        row("tool name", "tool", "tool.name", "tool_call.function.name"),
        row("tool call id", "tool", "tool_call.id", "tool.id"),
        row("arguments", "tool", "tool_call.function.arguments", "input.value", "tool.parameters"),
        row("result", "tool", "output.value"),
        *token_rows(usage.OPENINFERENCE),
        row("cost", "model call", "llm.cost.total"),
        row("model", "model call", "llm.model_name"),
        row("agent", "agent", "agent.name", "graph.node.name", "graph.node.id"),
    ),
    advice=f"""
        content: unset {_HIDE}INPUTS {_HIDE}OUTPUTS {_HIDE}INPUT_MESSAGES {_HIDE}OUTPUT_MESSAGES
            or TraceConfig(hide_inputs=False, hide_outputs=False); nothing is hidden by default. AWS's distribution
            sends them as log records to where the logs go (docs/agents/sdk-log-events.md)
            arize-ai.github.io/openinference/spec/configuration/trace-config
        no_tool_definitions: unset {_HIDE}LLM_TOOLS {_HIDE}INPUTS
            tools are hidden with the inputs; some instrumentations never export them
            arize-ai.github.io/openinference/spec/configuration/trace-config
        no_session: with using_attributes(session_id="..."):
            from openinference.instrumentation, around each turn; the openai-agents group_id is not exported
            README of the package openinference-instrumentation
    """,
    sample=sample_by("openinference.span.kind", call="LLM", tool="TOOL", agent="AGENT"),
)
