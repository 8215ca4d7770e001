"""MLflow tracing over OTLP: every value is JSON-encoded once more."""

from __future__ import annotations

import re

from evaluators.dialects.content import usage
from evaluators.dialects.content.content import Content
from evaluators.dialects.content.facts import NO_TOKENS, Facts, Kind
from evaluators.dialects.content.tool_values import arguments_of, outcome_of
from evaluators.dialects.decoding.values import as_dict, string, unwrap
from evaluators.model import JSON, Span, Tokens

_KINDS: dict[str, Kind] = {"CHAT_MODEL": "llm", "LLM": "llm", "TOOL": "tool", "AGENT": "agent"}

_TYPE_ONLY = re.compile(r'\{"output_type": ?(?:"[^"]*"|null)\}')
_CHUNK = "mlflow.chunk."
_USAGE = ("usage",)


def speaks(span: Span) -> bool:
    """Whether MLflow made the span."""
    return "mlflow.spanType" in span.attributes or span.scope.startswith("mlflow")


def read(span: Span) -> Facts:
    """The facts of an MLflow span."""
    get = span.attributes.get
    kind = _KINDS.get(str(unwrap(get("mlflow.spanType"))).upper()) or _kind_by_name(span.name)
    facts = Facts(span=span, dialect="mlflow", kind=kind, plain_name=_plain_name(span.name))
    given, came = _said(get("mlflow.spanInputs")), _said(get("mlflow.spanOutputs"))
    if kind == "tool":
        outcome = outcome_of(came)
        facts.tool_name = _tool_name(span)
        facts.arguments, facts.result = arguments_of(given), outcome.result
        facts.tool_id = outcome.id
        facts.tool_error = "error" if outcome.is_error else None
        if "args" in span.attributes and "description" in span.attributes:
            facts.definitions = Content(lambda: [_dspy_tool(span)], "input")
        return facts
    if kind == "other" and span.name.startswith("ToolManager."):
        _read_tool_manager(facts, given, came)
        return facts
    facts.input = Content(given, "input") if given is not None else None
    facts.output = Content(came, "output") if came is not None else None
    tokens = usage.read_usage_object(unwrap(get("mlflow.chat.tokenUsage")))
    if kind == "llm":
        _read_call(span, facts)
        facts.tokens = _counted(span, facts) if tokens is NO_TOKENS else tokens
    else:
        facts.aggregate = tokens
    if kind == "agent":
        facts.agent, facts.names_agent = facts.plain_name, True
        if span.name.startswith("Agent.run"):
            facts.agent = string(unwrap(get("name"))) or facts.agent
    return facts


def _read_tool_manager(facts: Facts, given: JSON, came: JSON) -> None:
    """pydantic-ai 1 under MLflow: the tool call part stands in the arguments of a method, of no type."""
    part = as_dict(as_dict(unwrap(given)).get("call"))
    if part.get("part_kind") == "tool-call" and (name := string(part.get("tool_name"))):
        facts.kind, facts.tool_name = "tool", name
        facts.tool_id, facts.arguments = string(part.get("tool_call_id")), unwrap(part.get("args"))
        facts.result = outcome_of(came).result


def _tool_name(span: Span) -> str | None:
    """The function's; DSPy's spans are named for its class, `Tool.get_weather`, and say the name apart."""
    get = span.attributes.get
    named = string(unwrap(get("mlflow.spanFunctionName"))) or string(unwrap(get("name")))
    return named or _plain_name(span.name)


def _dspy_tool(span: Span) -> JSON:
    get = span.attributes.get
    return {
        "name": _tool_name(span),
        "description": unwrap(get("description")),
        "parameters": {"type": "object", "properties": unwrap(get("args"))},
    }


def _kind_by_name(name: str) -> Kind:
    """pydantic-ai 1 under MLflow has no types: spans are named for its methods."""
    if name.startswith("InstrumentedModel.request"):
        return "llm"
    return "agent" if name.startswith("Agent.run") else "other"


def _said(value: JSON) -> JSON:
    """None where nothing was said; of an agent of the Agents SDK only its output's type is."""
    if value == "null" or (isinstance(value, str) and _TYPE_ONLY.fullmatch(value)):
        return None
    return value


def _read_call(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.request_tools = True
    facts.model = string(unwrap(get("mlflow.llm.model"))) or string(unwrap(get("model")))
    cost = as_dict(unwrap(get("mlflow.llm.cost")))
    facts.cost = usage.read_cost({"operation.cost": cost.get("total_cost")})
    if "mlflow.chat.tools" in span.attributes:
        facts.definitions = Content(get("mlflow.chat.tools"), "input")


def _counted(span: Span, facts: Facts) -> Tokens:
    """The usage in the provider's own answer, or in its last chunk: MLflow 2 and early 3 count nothing themselves."""
    if facts.output is not None and facts.output.may_mention(_USAGE):
        tokens = usage.usage_in_answer(facts.output.value)
        if tokens is not NO_TOKENS:
            return tokens
    for event in reversed(span.events):
        chunk = event.attributes.get("mlflow.chunk.value") if event.name[:13] == _CHUNK else None
        if isinstance(chunk, str) and "usage" in chunk:
            tokens = usage.usage_in_answer(unwrap(chunk))
            if tokens is not NO_TOKENS:
                return tokens
    return NO_TOKENS


def _plain_name(name: str) -> str | None:
    """MLflow numbers repeated span names: `get_weather_2`."""
    head, _, tail = name.rpartition("_")
    return (head if head and tail.isdecimal() else name) or None
