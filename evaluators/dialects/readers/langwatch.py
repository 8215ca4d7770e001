"""LangWatch's SDKs: `langwatch.input` and `langwatch.output`, each a value beside its type."""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Facts
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, as_list, number, unwrap
from evaluators.dialects.dialect import By, Dialect, Sample, has, scope
from evaluators.model import JSON

_TYPE, _INPUT, _OUTPUT = "langwatch.span.type", "langwatch.input", "langwatch.output"
_OF_ANSWER = frozenset({"tool_calls", "response_metadata", "usage_metadata"})
_NODES = frozenset({"agent", "model", "tools"})
"""How LangGraph calls the nodes of an agent."""
_PARAMS, _METRICS = "langwatch.params", "langwatch.metrics"


def _value(raw: JSON) -> JSON:
    """The value without its type. Its LangChain callback calls the role of a tool's message unknown."""
    item = as_dict(unwrap(raw))
    if not {"type", "value"} <= item.keys():
        return raw
    value = item["value"]
    if item["type"] == "list":
        return [_value(each) for each in as_list(value)]
    if item["type"] != "chat_messages":
        state = as_dict(value)
        messages = [as_dict(each) for each in as_list(state.get("messages"))]
        return (
            {**state, "messages": [*map(_with_role, messages)]}
            if messages and all(messages)
            else value
        )
    messages = map(as_dict, as_list(value))
    return [{**m, "role": "tool"} if m.get("role") == "unknown" else m for m in messages]


def _with_role(message: dict[str, JSON]) -> dict[str, JSON]:
    """A message in a graph's state, which is shown without its class."""
    if "tool_call_id" in message:
        return {"role": "tool", **message}
    is_answer = not _OF_ANSWER.isdisjoint(message)
    return {"role": "assistant" if is_answer else "user", **message}


def _result(raw: JSON) -> JSON:
    item = as_dict(unwrap(raw))
    value = item.get("value") if item.get("type") in ("json", "text") else _value(raw)
    messages = [as_dict(each) for each in as_list(value)]
    return [messages[-1]] if messages and messages[-1].get("role") == "tool" else value


def _finish(facts: Facts) -> None:
    if facts.kind == "other" and facts.span.name in _NODES:
        facts.graph_node = facts.span.name


_SIDES = (fields.input_from(_INPUT, later=_value), fields.output_from(_OUTPUT, later=_value))

LANGWATCH = Dialect(
    name="langwatch",
    speaks=has(_TYPE) | scope("langwatch"),
    content=has(_INPUT, _OUTPUT, _METRICS),
    completed=True,
    kind=By(_TYPE, kinds={"llm": "llm", "tool": "tool", "agent": "agent"}),
    fields={
        "llm": (
            *_SIDES,
            fields.definitions(_PARAMS, later=lambda raw: as_dict(unwrap(raw)).get("tools")),
            fields.tokens_in(
                _METRICS, read=lambda raw: usage.read_usage_object(unwrap(_value(raw)))
            ),
            fields.cost(
                _METRICS, read=lambda raw: number(as_dict(unwrap(_value(raw))).get("cost"))
            ),
        ),
        "tool": (
            fields.tool_name("gen_ai.tool.name", default=fields.span_name),
            fields.arguments(_INPUT, read=lambda raw: arguments_of(_value(raw))),
            fields.result(_OUTPUT, read=_result),
        ),
        "agent": (
            *_SIDES,
            fields.agent("gen_ai.agent.name", default=fields.span_name, always=True),
        ),
        "other": _SIDES,
    },
    finish=_finish,
    scopes=("langwatch",),
    advice="""
        no_session: with langwatch.trace(metadata={"thread_id": "..."}):
            around each turn; user_id beside it names the user, and langwatch.get_current_trace().update(...) sets
            them later
            source of langwatch 1.4.0, telemetry/tracing.py and attributes.py
        content: @langwatch.trace(capture_input=True, capture_output=True)
            and of @langwatch.span; these are its defaults, so something sets them to False
            source of langwatch 1.4.0, telemetry/tracing.py and span.py
    """,
    sample=Sample(
        spans={
            "model call": {_TYPE: "llm", _METRICS: "{}"},
            "tool": {_TYPE: "tool", _METRICS: "{}"},
            "agent": {_TYPE: "agent", _METRICS: "{}"},
            "step": {_TYPE: "chain", _METRICS: "{}"},
        },
    ),
)
