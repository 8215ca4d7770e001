"""Tool spans of the OTel GenAI conventions, in all their versions."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from evaluators.dialects.content.facts import Content, Facts
from evaluators.dialects.content.tools import arguments_of
from evaluators.dialects.decoding.decode import ask, names_of
from evaluators.dialects.decoding.key_sets import Among, Prefix, either
from evaluators.dialects.decoding.values import in_order, string, unwrap
from evaluators.dialects.fields import (
    Field,
    FieldPlan,
    Fill,
    Get,
    Step,
    result,
    step,
    tool_id,
    tool_name,
)
from evaluators.model import JSON, Span

ARGUMENTS = Among(
    *in_order("""gen_ai.tool.call.arguments gen_ai.tool.arguments gen_ai.tool.input
    gen_ai.tool.call.input tool.arguments tool.input""")
)
RESULT = Among(
    *in_order("""gen_ai.tool.call.result gen_ai.tool.result gen_ai.tool.output gen_ai.tool.message
    gen_ai.tool.call.output tool.result tool.output""")
)
_FUNCTION = Prefix("code.function.")
_SCHEMA = "gen_ai.tool.json_schema"
_EXTRAS = either(_FUNCTION, Among(_SCHEMA))
_PARAMETERS = "code.function.parameters."


def _arguments(names: AbstractSet[str]) -> Fill | None:
    key = next(iter(ARGUMENTS(names)), None)
    if key is None:
        return None

    def fill(facts: Facts, get: Get) -> None:
        facts.arguments = arguments_of(get(key))

    return fill


def _read_extras(facts: Facts, get: Get) -> None:
    attributes = facts.span.attributes
    if ask(attributes, _FUNCTION):
        _read_function(attributes, facts)
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


AGENT = Field("agent", "agent", ("gen_ai.agent.name",), string)
TOOL = FieldPlan(
    (
        AGENT,
        tool_name("gen_ai.tool.name", default=tool_in_span_name),
        tool_id("gen_ai.tool.call.id", "tool_call.id"),
        Step(_arguments),
        result(*RESULT),
        step(_EXTRAS, _read_extras),
    )
)
"""The fields of a tool's span."""
