"""LangSmith's OTel export: inputs and outputs as JSON in `gen_ai.prompt` and `gen_ai.completion`."""

from evaluators.dialects import fields
from evaluators.dialects.content import usage
from evaluators.dialects.content.facts import NO_TOKENS, Facts
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.values import as_dict, python_literal, string, unwrap
from evaluators.dialects.dialect import By, Dialect, has, sample_by
from evaluators.dialects.readers import genai
from evaluators.model import JSON

_KIND = "langsmith.span.kind"
_NAMES = ("gen_ai.agent.name", "langsmith.trace.name")


def _arguments(value: JSON) -> JSON:
    """A tool run's inputs: the arguments, or one text `input` that shows them as a Python repr."""
    inputs = arguments_of(value)
    item = as_dict(inputs)
    text = item.get("input")
    if item.keys() != {"input"} or not isinstance(text, str):
        return inputs
    return as_dict(unwrap(text)) or python_literal(text) or inputs


def _finish(facts: Facts) -> None:
    get = facts.span.attributes.get
    if facts.kind == "llm":
        facts.tokens, facts.aggregate = (
            usage.read_tokens(facts.span.attributes, usage.GENAI),
            NO_TOKENS,
        )
        if facts.tokens is NO_TOKENS:
            answer = as_dict(unwrap(get("gen_ai.completion")))
            stated = answer.get("usage_metadata") or answer.get("usage")
            facts.tokens = usage.read_usage_object(stated)
        facts.request_tools = facts.definitions is None
    elif facts.kind == "other" and not facts.span.parent_span_id:
        names = (string(get(key)) for key in _NAMES)
        facts.agent = next((name for name in names if name), facts.span.name or None)


LANGSMITH = Dialect(
    name="langsmith",
    speaks=has(_KIND),
    wraps="name",
    base=genai.read,
    kind=By(_KIND, kinds={"llm": "llm", "tool": "tool", "agent": "agent"}),
    fields={
        "llm": (fields.model("gen_ai.response.model", "gen_ai.request.model"),),
        "tool": (
            fields.over(
                fields.tool_name(
                    "gen_ai.tool.name", "langsmith.trace.name", default=fields.span_name
                )
            ),
            fields.over(fields.arguments("gen_ai.prompt", read=_arguments)),
            fields.over(fields.result("gen_ai.completion")),
        ),
        "agent": (fields.over(fields.agent(beside=_NAMES, default=fields.span_name)),),
    },
    finish=_finish,
    reads=(
        fields.row("input", "model call", "gen_ai.prompt"),
        fields.row("output", "model call", "gen_ai.completion"),
    ),
    sample=sample_by("langsmith.span.kind", call="llm", tool="tool", agent="agent"),
)
