"""MLflow tracing over OTLP: every value is JSON-encoded once more."""

from __future__ import annotations

from evaluators.dialects import usage
from evaluators.dialects.content import Content
from evaluators.dialects.facts import Facts, Kind
from evaluators.dialects.tool_values import arguments_of, outcome_of
from evaluators.dialects.values import as_dict, string, unwrap
from evaluators.model import Span

_KINDS: dict[str, Kind] = {"CHAT_MODEL": "llm", "LLM": "llm", "TOOL": "tool", "AGENT": "agent"}


def speaks(span: Span) -> bool:
    """Whether MLflow made the span."""
    return "mlflow.spanType" in span.attributes or span.scope.startswith("mlflow")


def read(span: Span) -> Facts:
    """The facts of an MLflow span."""
    get = span.attributes.get
    kind = _KINDS.get(str(unwrap(get("mlflow.spanType"))).upper(), "other")
    facts = Facts(span=span, dialect="mlflow", kind=kind)
    given, came = get("mlflow.spanInputs"), get("mlflow.spanOutputs")
    if kind == "tool":
        outcome = outcome_of(came)
        facts.tool_name = string(unwrap(get("mlflow.spanFunctionName"))) or _plain(span.name)
        facts.arguments, facts.result = arguments_of(given), outcome.result
        facts.tool_id = outcome.id
        facts.tool_error = "error" if outcome.is_error else None
        return facts
    facts.input = Content(given, "input") if given is not None else None
    facts.output = Content(came, "output") if came is not None else None
    tokens = usage.read_usage_object(unwrap(get("mlflow.chat.tokenUsage")))
    if kind == "llm":
        _read_call(span, facts)
        facts.tokens = tokens
    else:
        facts.aggregate = tokens
    if kind == "agent":
        facts.agent, facts.names_agent = _plain(span.name), True
    return facts


def _read_call(span: Span, facts: Facts) -> None:
    get = span.attributes.get
    facts.request_tools = True
    facts.model = string(unwrap(get("mlflow.llm.model"))) or string(unwrap(get("model")))
    cost = as_dict(unwrap(get("mlflow.llm.cost")))
    facts.cost = usage.read_cost({"operation.cost": cost.get("total_cost")})
    if "mlflow.chat.tools" in span.attributes:
        facts.definitions = Content(get("mlflow.chat.tools"), "input")


def _plain(name: str) -> str | None:
    """MLflow numbers repeated span names: `get_weather_2`."""
    head, _, tail = name.rpartition("_")
    return (head if head and tail.isdecimal() else name) or None
