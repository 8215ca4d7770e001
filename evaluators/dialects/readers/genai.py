"""The OTel GenAI conventions: messages, tools and usage as span attributes, in all their versions.

Every other dialect is completed from here, since most of them carry some `gen_ai.*` attributes beside their own.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts, Kind
from evaluators.dialects.content.messages import Side
from evaluators.dialects.content.sessions import ONLY_OF, SESSION, USER
from evaluators.dialects.decoding.decode import ask, names_of
from evaluators.dialects.decoding.key_sets import Among, Prefix, either, unflatten
from evaluators.dialects.decoding.values import as_dict, as_list, in_order, string, unwrap
from evaluators.dialects.dialect import has, kinds
from evaluators.dialects.fields import (
    Field,
    FieldPlan,
    Fill,
    Get,
    Step,
    agent,
    aggregate,
    cost,
    model,
    response_id,
    row,
    step,
    system,
    token_rows,
    tokens,
)
from evaluators.dialects.readers import genai_events
from evaluators.dialects.readers.genai_tools import AGENT, ARGUMENTS, RESULT, TOOL
from evaluators.model import JSON, Span

_KINDS = kinds(
    # LiteLLM names the call's type; `process_thread_run` is a whole run of Azure's agents, with its messages as events.
    llm="""chat generate_content text_completion completion completions chat.completions chat_completion
    chat_completions chat.completion streaming_chat message messages responses response generate
    model_generation invoke_model converse converse_stream acompletion atext_completion aresponses
    anthropic_messages agenerate_content process_thread_run""",
    tool="execute_tool tool tool_call call_tool",
    agent="invoke_agent agent agent_run run_agent invoke_swarm invoke_multiagent",
    handoff="handoff goto transfer",
)
_INPUT = Among(
    *in_order("""gen_ai.input.messages gen_ai.input_messages gen_ai.prompt gen_ai.input
    gen_ai.request.messages input.messages mastra.agent_run.input mastra.workflow_run.input""")
)
_OUTPUT = Among(
    *in_order("""gen_ai.output.messages gen_ai.output_messages gen_ai.completion gen_ai.output
    output.messages mastra.agent_run.output mastra.workflow_run.output""")
)
_DEFINITIONS = Among(
    *in_order("""gen_ai.tool.definitions gen_ai.request.tools gen_ai.request.available_tools
    gen_ai.tools gen_ai.agent.tools""")
)
_ANSWER = Among("gen_ai.response.text", "gen_ai.response.tool_calls")
"""Sentry's SDKs: the answer's texts and calls apart."""
_SIDES = Among(*_INPUT, *_OUTPUT, *_ANSWER)
_WORTH = Among(*_SIDES, "gen_ai.tool.name", "gen_ai.system_instructions", *_DEFINITIONS)
_KERNEL_FUNCTIONS = "sk.available_functions"
"""Semantic Kernel: the names of the functions offered, on the loop around the model calls."""
_MARKS = Among(
    *in_order("""gen_ai.operation.name gen_ai.input.messages gen_ai.output.messages gen_ai.tool.name
    gen_ai.agent.name gen_ai.request.model gen_ai.response.model gen_ai.prompt gen_ai.completion
    gen_ai.system gen_ai.provider.name"""),
    _KERNEL_FUNCTIONS,
)


SPEAKS = has(*_MARKS)  # the span carries attributes of the conventions at all


def speaks(span: Span) -> bool:
    return bool(ask(span.attributes, _MARKS))


def has_content(span: Span) -> bool:
    return bool(ask(span.attributes, _WORTH))


def read(span: Span, dialect: str = "genai") -> Facts:
    attributes = span.attributes
    kind = kind_of(span)
    facts = Facts(span=span, dialect=dialect, kind=kind)
    get = attributes.get
    for fill in ask(attributes, _PLANS[kind]):
        fill(facts, get)
    if span.events:
        if kind in ("tool", "handoff"):
            genai_events.read_tool(span, facts)
        else:
            genai_events.read_conversation(span, facts)
    return facts


def kind_of(span: Span) -> Kind:
    """The kind by `gen_ai.operation.name`, else by attributes that only one kind of span carries."""
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    if type(operation) is str and operation in _KINDS:  # as nearly all are written
        return _KINDS[operation]
    operation = string(operation)
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
    *in_order("""gen_ai.response.model gen_ai.response.id gen_ai.output.messages gen_ai.completion
    gen_ai.completion.0.content gen_ai.completion.0.role gen_ai.usage.output_tokens
    gen_ai.usage.completion_tokens gen_ai.prompt.0.content""")
)


def attributes_are_empty(attributes: Mapping[str, JSON]) -> bool:
    return not ask(attributes, _OF_A_CALL)


def _agent_in_span_name(span: Span) -> str | None:
    for prefix in ("invoke_agent ", "agent_run ", "agent "):
        if span.name.startswith(prefix):
            return span.name.removeprefix(prefix).strip(" []")
    return span.name or None


def _read_definitions(facts: Facts, get: Get) -> None:
    facts.definitions = _offered(facts.span.attributes)


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
_OFFERS = either(_DEFINITIONS, _FLAT_REQUEST, Among(_KERNEL_FUNCTIONS))
_CALLS = Among("gen_ai.completion.0.function_call.name")
"""LiteLLM writes the calls of an answer here and leaves them out of the messages."""


def _conversation(side: Side, keys: Among, flat: Prefix, *, always: bool = True) -> Field:
    """One side of a span: under one key, or flattened into many.

    Unless `always`, as on a span that is neither call nor agent, flattened messages count only beside others.
    """

    def plan(names: AbstractSet[str]) -> Fill | None:
        if not always and not _SIDES(names):
            return None
        key, is_flat = next(iter(keys(names)), None), flat(names)
        if key is None and not is_flat:
            return None
        has_calls = side == "output" and bool(_CALLS(names))

        def fill(facts: Facts, get: Get) -> None:
            if key is not None and not (has_calls and facts.span.scope == "litellm"):
                content = Content(get(key), side)
            elif is_flat:
                content = Content(partial(_flat, facts.span, flat.text), side)
            else:
                return
            setattr(facts, side, content)

        return fill

    return Step(plan)


def _read_answer(facts: Facts, get: Get) -> None:
    if facts.output is None:
        facts.output = Content(partial(_answer, facts.span.attributes), "output")


def _answer(attributes: Mapping[str, JSON]) -> JSON:
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


_CONTENT = (
    _conversation("input", _INPUT, _PROMPT),
    _conversation("output", _OUTPUT, _COMPLETION),
    step(_ANSWER, _read_answer),
    system("gen_ai.system_instructions"),
    step(_OFFERS, _read_definitions),
)
_SUMS = (aggregate(), aggregate(usage.AGGREGATE))
_PLANS: dict[Kind, FieldPlan] = {
    "llm": FieldPlan(
        (
            AGENT,
            tokens(),
            cost(*usage.COSTS),
            model("gen_ai.response.model", "gen_ai.request.model"),
            response_id("gen_ai.response.id"),
            *_CONTENT,
        )
    ),
    "agent": FieldPlan(
        (agent("gen_ai.agent.name", default=_agent_in_span_name), *_SUMS, *_CONTENT)
    ),
    "tool": TOOL,
    "handoff": TOOL,
    "other": FieldPlan(
        (
            agent("gen_ai.agent.name"),
            *_SUMS,
            _conversation("input", _INPUT, _PROMPT, always=False),
            _conversation("output", _OUTPUT, _COMPLETION, always=False),
            *_CONTENT[2:],
        )
    ),
}
"""The fields of each kind of span, of which a span's keys tell once which can be filled."""

ROWS = (
    row("input", "model call", *_INPUT, "gen_ai.prompt.N.content"),
    row("output", "model call", *_OUTPUT, "gen_ai.completion.N.content", "gen_ai.response.text"),
    row("system", "model call", "gen_ai.system_instructions"),
    row("tools offered", "model call", *_DEFINITIONS),
    row("tool name", "tool", "gen_ai.tool.name"),
    row("tool call id", "tool", "gen_ai.tool.call.id", "tool_call.id"),
    row("arguments", "tool", *ARGUMENTS, "code.function.parameters.N.value"),
    row("result", "tool", *RESULT, "code.function.return.value"),
    *token_rows(usage.GENAI),
    row("cost", "model call", *usage.COSTS),
    row("model", "model call", "gen_ai.response.model", "gen_ai.request.model"),
    row("agent", "agent", "gen_ai.agent.name"),
    row("session", "any", *(key for key in SESSION if key not in ONLY_OF)),
    row("user", "any", *USER),
)
"""Every dialect may be completed from these keys."""
