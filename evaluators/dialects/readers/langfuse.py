"""Langfuse: `langfuse.observation.*` of the Python and JS SDKs, v2 to v5."""

from msgspec import structs

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.content.messages import Side
from evaluators.dialects.content.tools import arguments_of, passed_by_python
from evaluators.dialects.decoding.values import as_dict, integer, number, string, unwrap
from evaluators.dialects.dialect import By, Dialect, has, sample_by, scope
from evaluators.model import JSON, Tokens

_TYPE = "langfuse.observation.type"
_INPUT = "langfuse.observation.input"
_OUTPUT = "langfuse.observation.output"
_USAGE = "langfuse.observation.usage_details"
_CALL_ID = "langfuse.observation.metadata.tool_call_id"
_OF_TRACE = ("langfuse.trace.input", "langfuse.trace.output")

_ROOTS = ("langfuse.internal.as_root", "langfuse.internal.is_app_root")
"""The SDK marks the first span of its own, whose parent it does not export."""


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    facts.is_root = any(get(mark) is True for mark in _ROOTS)
    facts.is_side = get(_TYPE) in ("guardrail", "evaluator")
    if facts.kind != "tool" and not facts.span.parent_span_id:
        facts.input = facts.input or _side(get(_OF_TRACE[0]), "input")
        facts.output = facts.output or _side(get(_OF_TRACE[1]), "output")
    if facts.kind == "llm":
        facts.request_tools = True
    elif facts.kind in ("tool", "other"):
        failed = facts.tool_error is not None or get("langfuse.observation.level") == "ERROR"
        message = string(get("langfuse.observation.status_message"))
        facts.tool_error = (message or "error") if failed else None


def _side(value: JSON, side: Side) -> Content | None:
    return Content(value, side) if value is not None else None


def _tokens(value: JSON) -> Tokens:
    """Usage details. The LangChain handler takes the details (`input_cache_read`) out of `input`: put them back."""
    details = as_dict(unwrap(value))
    tokens = usage.read_usage_object(details)
    sent, received, total = (integer(details.get(key)) for key in ("input", "output", "total"))
    if sent is None or received is None or total is None or sent + received == total:
        return tokens
    return structs.replace(
        tokens,
        input=sent + _details(details, "input_"),
        output=received + _details(details, "output_"),
    )


def _arguments(value: JSON) -> JSON:
    """A tool's arguments; `@observe` writes those of a Python function as `{"args", "kwargs"}`."""
    item = as_dict(unwrap(value))
    return passed_by_python(item) if item.keys() == {"args", "kwargs"} else arguments_of(value)


def _details(details: dict[str, JSON], prefix: str) -> int:
    return sum(integer(value) or 0 for key, value in details.items() if key.startswith(prefix))


_SIDES = (fields.input_from(_INPUT), fields.output_from(_OUTPUT))

LANGFUSE = Dialect(
    name="langfuse",
    speaks=scope("langfuse") | has(_TYPE),
    content=has(_INPUT, _OUTPUT, _USAGE, _CALL_ID, *_OF_TRACE),
    completed=True,
    wraps="name",
    kind=By(_TYPE, kinds={"generation": "llm", "tool": "tool", "agent": "agent"}),
    fields={
        "llm": (
            *_SIDES,
            fields.tokens_in(_USAGE, read=_tokens),
            fields.cost(
                "langfuse.observation.cost_details",
                read=lambda value: number(as_dict(unwrap(value)).get("total")),
            ),
            fields.model("langfuse.observation.model.name", "langfuse.observation.model"),
        ),
        "tool": (
            fields.tool_name(default=fields.span_name),
            fields.arguments(_INPUT, read=_arguments),
            fields.result(_OUTPUT),
            fields.tool_id(_CALL_ID, read=fields.quoted),
        ),
        "agent": (*_SIDES, fields.agent(default=fields.span_name, always=True)),
        "other": _SIDES,
    },
    finish=_finish,
    advice="""
        no_session: with propagate_attributes(session_id="..."):
            from langfuse, around each turn (JS: propagateAttributes({sessionId}, ...))
            langfuse.com/docs/sessions
        content: LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true
            or capture_input=True, capture_output=True of @observe
            langfuse.com/docs/sdk/python/decorators
    """,
    sample=sample_by(
        "langfuse.observation.type", call="generation", tool="tool", agent="agent", step="span"
    ),
)
