"""OpenLLMetry (traceloop): `traceloop.entity.*` around workflows, agents and tools."""

import re
from collections.abc import Mapping

from evaluators.dialects.content.call_marks import is_name
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts, Kind
from evaluators.dialects.content.outcomes import ToolOutcome, outcome_of
from evaluators.dialects.content.tools import arguments_of, passed_by_python, tools_beside
from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.decoding.values import as_dict, as_list, python_literal, string, unwrap
from evaluators.dialects.dialect import Dialect, Sample, has
from evaluators.dialects.fields import row
from evaluators.dialects.readers import genai
from evaluators.model import JSON, Span

_KINDS: dict[str, Kind] = {"workflow": "agent", "agent": "agent", "tool": "tool", "task": "other"}
_RUNNABLES = ("workflow ", "Runnable")
"""How LangChain's graphs and steps are called in OpenLLMetry for JS: by their class, which names no agent."""
_STATE = '{"args":[{"messages":'
_ASKED = re.compile(r'\{"input": ?\[\{"role":')
_ANSWERED = re.compile(r'\{"result": ?\{"response": ?\{"role":')
"""How the outputs of LlamaIndex's steps begin: the event that starts a workflow, and the one that ends it."""
_NAMED = re.compile(r'"current_agent_name": ?"([^"\\]+)"')
_SUFFIXES = (".workflow", ".task", ".agent", ".tool")
_DECORATORS = "traceloop.tracer"
_SAYS_CALL = frozenset({"gen_ai.operation.name", "llm.request.type"})
_AGNO = re.compile(r"status='(success|failure)' result=")
_AGNO_ERROR, _AGNO_END = " error=", " updated_session_state="


def _read(span: Span) -> Facts:
    attributes = span.attributes
    facts = genai.read(span, "traceloop")
    kind = _KINDS.get(str(attributes.get("traceloop.span.kind")))
    if (
        facts.kind == "llm"
        and kind in ("agent", "tool")
        and _SAYS_CALL.isdisjoint(names_of(attributes))
    ):
        facts.kind, facts.model = kind, None  # CrewAI's agents name their model
        facts.aggregate, facts.tokens = facts.tokens, NO_TOKENS
    if kind is not None and facts.kind not in ("llm", "handoff"):
        called = kind == "other" and (facts.kind == "tool" or _calls_tool(attributes))
        facts.kind = "tool" if called else kind
    if facts.kind == "tool":
        _read_tool(span, facts)
        return facts
    if facts.kind == "agent":
        _name_agent(span, facts)
        if facts.definitions is None and "crewai.agent.tools" in attributes:
            facts.definitions = Content(attributes.get("crewai.agent.tools"), "input")
    if facts.kind == "llm" and facts.definitions is None:
        facts.definitions = _beside_messages(attributes.get("traceloop.entity.input"))
    if facts.kind == "other" and span.scope == _DECORATORS:
        _read_task(span, facts)
    if facts.input is None and "traceloop.entity.input" in attributes:
        facts.input = Content(_input(attributes.get("traceloop.entity.input")), "input")
    if facts.output is None and "traceloop.entity.output" in attributes:
        _read_output(attributes.get("traceloop.entity.output"), facts)
    return facts


def _beside_messages(entity: JSON) -> Content | None:
    if not isinstance(entity, str) or not ('"tools"' in entity or '"functions"' in entity):
        return None
    return Content(lambda: tools_beside(entity), "input")


def _name_agent(span: Span, facts: Facts) -> None:
    """The agent's name; of a workflow of LlamaIndex that of the agent inside, of other workflows their own."""
    get = span.attributes.get
    facts.is_workflow = get("traceloop.span.kind") == "workflow"
    named = string(get("gen_ai.agent.name"))
    if named is None and facts.is_workflow:
        named = _agent_inside(get("traceloop.entity.output"))
    name = named or string(get("traceloop.entity.name")) or _plain(span.name)
    facts.agent = None if name.startswith(_RUNNABLES) else name
    facts.names_agent = named is not None or get("traceloop.span.kind") == "agent"


def _agent_inside(entity: JSON) -> str | None:
    inside = _NAMED.search(entity) if isinstance(entity, str) else None
    return inside[1] if inside else None


def _read_output(entity: JSON, facts: Facts) -> None:
    """The output of a step; LlamaIndex's first event is the question, its last one holds the answer, both the agent."""
    text = entity if isinstance(entity, str) else ""
    if facts.agent is None and facts.span.scope.endswith(".llamaindex"):
        facts.agent = _agent_inside(entity)
        facts.names_agent = facts.agent is not None
    if _ASKED.match(text) and facts.input is None:
        facts.input = Content(as_dict(unwrap(text)).get("input"), "input")
    elif _ANSWERED.match(text):
        facts.output = Content(as_dict(unwrap(text)).get("result"), "output")
    else:
        facts.output = Content(entity, "output")


def _calls_tool(attributes: Mapping[str, JSON]) -> bool:
    """Whether a task is the step of LlamaIndex's workflow that calls a tool; older versions only show what came out."""
    if "tool.name" in attributes:
        return True
    if attributes.get("traceloop.entity.name") != "call_tool.task":
        return False
    entity_output = attributes.get("traceloop.entity.output")
    return isinstance(entity_output, str) and "tool_output" in entity_output


def _read_task(span: Span, facts: Facts) -> None:
    """A function under `@task`, which may well be a tool's."""
    get = span.attributes.get
    facts.tool_name = string(get("traceloop.entity.name"))
    facts.arguments = _arguments(get("traceloop.entity.input"), facts.tool_name)
    facts.result = get("traceloop.entity.output")


def _plain(name: str) -> str:
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def _read_tool(span: Span, facts: Facts) -> None:
    attributes = span.attributes
    name = string(attributes.get("gen_ai.tool.name")) or string(attributes.get("tool.name"))
    if facts.arguments is None:
        facts.arguments = arguments_of(attributes.get("tool.arguments"))
    facts.tool_name = name or string(attributes.get("traceloop.entity.name")) or _plain(span.name)
    entity = attributes.get("traceloop.entity.input")
    passed = facts.arguments if facts.arguments is not None else entity
    facts.arguments = _arguments(passed, facts.tool_name, of_entity=facts.arguments is None)
    if facts.tool_id is None and isinstance(entity, str):
        facts.tool_id = _call_id(entity)
    if facts.result is None:
        outcome = _outcome(attributes)
        facts.result, facts.tool_id = outcome.result, facts.tool_id or outcome.id
        # LlamaIndex's spans are named for the class, FunctionTool.
        if name is None and outcome.name and not is_name(outcome.name, facts.tool_name or ""):
            facts.tool_name = outcome.name
        facts.tool_error = outcome.error


def _input(entity: JSON) -> JSON:
    if isinstance(entity, str) and entity.startswith(_STATE):
        return as_list(as_dict(unwrap(entity)).get("args"))[:1]
    return entity


def _arguments(passed: JSON, name: str | None, *, of_entity: bool = True) -> JSON:
    """The arguments in what is around them: LangChain's callback, a decorator's call, or an MCP client's request.

    Only the callback's also is where the conventions have the arguments.
    """
    item = as_dict(unwrap(passed))
    if "input_str" in item:
        return _langchain(item)
    if not of_entity:
        return arguments_of(passed)
    if item.keys() == {"args"} and len(as_list(item["args"])) == 1:  # for JS
        return _whole_call(as_list(item["args"])[0])
    if "kwargs" in item and item.keys() <= {"args", "kwargs"}:
        return passed_by_python(item)
    if item.keys() == {"tool_name", "arguments"} and item["tool_name"] == name:
        return item["arguments"]
    return arguments_of(passed)


def _langchain(item: dict[str, JSON]) -> JSON:
    if isinstance(item.get("inputs"), dict):
        return as_dict(item["inputs"])
    text = item["input_str"]
    if not isinstance(text, str):
        return text
    return as_dict(unwrap(text)) or python_literal(text) or text


def _whole_call(value: JSON) -> JSON:
    """The arguments; where LangChain was handed a whole tool call, those of it."""
    item = as_dict(unwrap(value))
    return (
        item["args"] if item.get("type") == "tool_call" and "args" in item else arguments_of(value)
    )


def _outcome(attributes: Mapping[str, JSON]) -> ToolOutcome:
    entity_output = attributes.get("traceloop.entity.output")
    run = _of_agno(entity_output) if isinstance(entity_output, str) else None
    if str(attributes.get("traceloop.entity.input")).startswith('{"tool_name"'):
        item = as_dict(unwrap(entity_output))  # its MCP client's
        entity_output = item["result"] if item.keys() == {"result"} else entity_output
    return run or outcome_of(entity_output)


def _of_agno(text: str) -> ToolOutcome | None:
    """Agno's result of a function, shown as a repr; what failed has no result but an error. None: it is another's."""
    head = _AGNO.match(text)
    if head is None:
        return None
    middle = text.rfind(_AGNO_ERROR, head.end(), max(text.rfind(_AGNO_END), 0))
    if middle < 0:
        return None
    end = text.find(_AGNO_END, middle + len(_AGNO_ERROR))
    result = _shown(text[head.end() : middle])
    error = _shown(text[middle + len(_AGNO_ERROR) : end])
    failed = head[1] == "failure"
    return ToolOutcome(
        result=error if failed and error else result, error="error" if failed else None
    )


def _shown(text: str) -> JSON:
    """The value of a repr: a quoted text, None, or anything else as it is shown."""
    if text == "None":
        return None
    literal = as_list(python_literal(f"[{text}]"))
    return literal[0] if len(literal) == 1 else text


def _call_id(entity: str) -> str | None:
    if "tool_call_id" not in entity:
        return None
    kwargs: dict[str, JSON] = as_dict(as_dict(unwrap(entity)).get("kwargs"))
    return string(kwargs.get("tool_call_id"))


_SCOPES = (
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.openai.",
    "opentelemetry.instrumentation.anthropic",
    "opentelemetry.instrumentation.bedrock",
    "opentelemetry.instrumentation.cohere",
    "opentelemetry.instrumentation.crewai",
    "opentelemetry.instrumentation.google_generativeai",
    "opentelemetry.instrumentation.groq",
    "opentelemetry.instrumentation.haystack",
    "opentelemetry.instrumentation.llamaindex",
    "opentelemetry.instrumentation.mcp",
    "opentelemetry.instrumentation.mistralai",
    "opentelemetry.instrumentation.ollama",
    "opentelemetry.instrumentation.agno",
)

TRACELOOP = Dialect(
    name="traceloop",
    speaks=has("traceloop.span.kind", "traceloop.entity.name"),
    scopes=_SCOPES,
    read=_read,
    reads=(
        row("input", "agent", "traceloop.entity.input", "crewai.crew.tasks"),
        row("output", "agent", "traceloop.entity.output"),
        row("tool name", "tool", "tool.name", "traceloop.entity.name"),
        row("arguments", "tool", "tool.arguments", "traceloop.entity.input"),
        row("result", "tool", "traceloop.entity.output"),
        row("agent", "agent", "traceloop.entity.name"),
        row("tools offered", "model call", "llm.request.functions.N.name"),
        row("tools offered", "agent", "crewai.agent.tools"),
    ),
    advice="""
        all_content: TRACELOOP_TRACE_CONTENT=true
            true is its default, so something sets it to false
            traceloop.com/docs/openllmetry/privacy
        no_session: Traceloop.set_association_properties({"session_id": "..."})
            traceloop.com/docs/openllmetry/tracing/association
    """,
    sample=Sample(
        spans={
            "model call": {"llm.request.type": "chat", "gen_ai.completion.0.role": "assistant"},
            "tool": {"traceloop.span.kind": "tool"},
            "agent": {"traceloop.span.kind": "workflow"},
        },
    ),
)
