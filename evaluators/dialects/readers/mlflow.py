"""MLflow tracing over OTLP: every value is JSON-encoded once more."""

import re

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Content, Facts, Kind
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.decode import names_of
from evaluators.dialects.decoding.values import as_dict, number, string, unwrap
from evaluators.dialects.dialect import By, Dialect, has, sample_by, scope
from evaluators.model import JSON, Span, Tokens

_TYPE = "mlflow.spanType"
_INPUTS = "mlflow.spanInputs"
_OUTPUTS = "mlflow.spanOutputs"
_USAGE = "mlflow.chat.tokenUsage"
_CHUNK = "mlflow.chunk."
_TYPE_ONLY = re.compile(r'\{"output_type": ?(?:"[^"]*"|null)\}')
_HINTS = ("usage",)
_OF_AGENT = frozenset({"handoffs", "output_type"})
_by_type = By(_TYPE, kinds={"chat_model": "llm", "llm": "llm", "tool": "tool", "agent": "agent"})


def _kind(facts: Facts) -> Kind:
    """By its type; pydantic-ai 1 under MLflow has no types, and its spans are named for its methods."""
    kind, name = _by_type(facts), facts.span.name
    if kind != "other":
        return kind
    if name.startswith("InstrumentedModel.request"):
        return "llm"
    return "agent" if name.startswith("Agent.run") else "other"


def _plain_name(span: Span) -> str | None:
    """The name without the number that MLflow adds to repeated ones: `get_weather_2`."""
    head, _, tail = span.name.rpartition("_")
    return (head if head and tail.isdecimal() else span.name) or None


def _value(value: JSON) -> JSON:
    """None where nothing was recorded; an agent of the Agents SDK records no more than its output's type."""
    if value == "null" or (isinstance(value, str) and _TYPE_ONLY.fullmatch(value)):
        return None
    return value


def _finish(facts: Facts) -> None:
    span = facts.span
    get = span.attributes.get
    facts.plain_name = _plain_name(span)
    if facts.kind == "tool":
        if "args" in span.attributes and "description" in span.attributes:
            facts.definitions = Content([_dspy_tool(facts)], "input")
        return
    if facts.kind == "other" and span.name.startswith("ToolManager."):
        _read_tool_manager(facts)
        return
    tokens = usage.read_usage_object(unwrap(get(_USAGE)))
    if tokens is NO_TOKENS and facts.kind == "llm":
        tokens = usage.read_usage_object(unwrap(get("usage")))
    if facts.kind == "llm":
        facts.request_tools = True
        facts.tokens = _counted(facts) if tokens is NO_TOKENS else tokens
    else:
        facts.aggregate = tokens
    if facts.kind == "agent":
        # The Agents SDK's workflow and its runner are agents to MLflow too; an agent says what it may hand over to.
        facts.agent, facts.names_agent = (
            facts.plain_name,
            not _OF_AGENT.isdisjoint(names_of(span.attributes)),
        )
        if span.name.startswith("Agent.run"):
            facts.agent, facts.names_agent = fields.quoted(get("name")) or facts.agent, True


def _dspy_tool(facts: Facts) -> JSON:
    get = facts.span.attributes.get
    return {
        "name": facts.tool_name,
        "description": unwrap(get("description")),
        "parameters": {"type": "object", "properties": unwrap(get("args"))},
    }


def _read_tool_manager(facts: Facts) -> None:
    """pydantic-ai 1 under MLflow: the tool call part is in the arguments of a method, of no type."""
    get = facts.span.attributes.get
    facts.input = facts.output = None
    part = as_dict(as_dict(unwrap(_value(get(_INPUTS)))).get("call"))
    if part.get("part_kind") == "tool-call" and (name := string(part.get("tool_name"))):
        facts.kind, facts.tool_name = "tool", name
        facts.tool_id, facts.arguments = string(part.get("tool_call_id")), unwrap(part.get("args"))
        facts.result = _value(get(_OUTPUTS))


def _counted(facts: Facts) -> Tokens:
    """The usage in the provider's own answer, or in its last chunk: MLflow 2 and early 3 count nothing themselves."""
    if facts.output is not None and facts.output.may_mention(_HINTS):
        tokens = usage.usage_in_answer(facts.output.value)
        if tokens is not NO_TOKENS:
            return tokens
    for event in reversed(facts.span.events):
        chunk = event.attributes.get("mlflow.chunk.value") if event.name[:13] == _CHUNK else None
        if isinstance(chunk, str) and "usage" in chunk:
            tokens = usage.usage_in_answer(unwrap(chunk))
            if tokens is not NO_TOKENS:
                return tokens
    return NO_TOKENS


_SIDES = (fields.input_from(_INPUTS, read=_value), fields.output_from(_OUTPUTS, read=_value))

MLFLOW = Dialect(
    name="mlflow",
    speaks=has(_TYPE) | scope("mlflow"),
    content=has(_INPUTS, _OUTPUTS, _USAGE),
    completed=True,
    wraps="name",
    kind=_kind,
    fields={
        "llm": (
            *_SIDES,
            fields.definitions("mlflow.chat.tools"),
            fields.model("mlflow.llm.model", "model", read=fields.quoted),
            fields.cost(
                "mlflow.llm.cost",
                read=lambda value: number(as_dict(unwrap(value)).get("total_cost")),
            ),
        ),
        "tool": (
            # DSPy's spans are named for its class, `Tool.get_weather`, and have the name apart.
            fields.tool_name(
                "mlflow.spanFunctionName", "name", read=fields.quoted, default=_plain_name
            ),
            fields.arguments(_INPUTS, read=lambda value: arguments_of(_value(value))),
            fields.result(_OUTPUTS, read=_value),
        ),
        "agent": _SIDES,
        "other": _SIDES,
    },
    finish=_finish,
    reads=(fields.row("input tokens", "model call", _USAGE),),
    advice="""
        no_session: span.set_attribute("session.id", "...")
            on the root span: mlflow.trace.session is trace metadata, which is not exported over OTLP
            mlflow.org/docs/latest/genai/tracing/track-users-sessions; captures of mlflow 3.17.2
    """,
    sample=sample_by(
        "mlflow.spanType", call='"CHAT_MODEL"', tool='"TOOL"', agent='"AGENT"', step='"CHAIN"'
    ),
)
