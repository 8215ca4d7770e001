"""VoltAgent: `entity.*` and `span.type`, with `input` and `output` as they are."""

from evaluators.dialects import fields
from evaluators.dialects.content.usage import TokenKeys
from evaluators.dialects.decoding.values import unwrap
from evaluators.dialects.dialect import By, Dialect, Sample, has, scope_is
from evaluators.model import JSON

_RUN = TokenKeys(
    input=("usage.prompt_tokens",),
    output=("usage.completion_tokens",),
    cached=("usage.cached_tokens",),
    reasoning=("usage.reasoning_tokens",),
)
"""Of an agent's whole run. Its model span has the counts of the last step only, and they are not read."""


def _names(value: JSON) -> JSON:
    inner = unwrap(value)
    return [name.strip() for name in inner.split(",")] if isinstance(inner, str) else inner


VOLTAGENT = Dialect(
    name="voltagent",
    speaks=scope_is("@voltagent/core") & has("entity.type"),
    kind=By(  # an agent's own span has no `span.type`
        "span.type", "entity.type", kinds={"llm": "llm", "tool": "tool", "agent": "agent"}
    ),
    fields={
        "llm": (
            fields.input_from("llm.messages"),
            fields.definitions("llm.tools", read=_names),
            fields.model("llm.model"),
        ),
        "tool": (
            fields.tool_name("tool.name"),
            fields.tool_id("tool.call.id"),
            fields.arguments("input"),
            fields.result("output"),
        ),
        "agent": (
            fields.agent("entity.name", default=fields.span_name, always=True),
            fields.input_from("input"),
            fields.output_from("output"),
            fields.system("agent.instructions"),
            fields.aggregate(_RUN),
        ),
    },
    sample=Sample(
        scope="@voltagent/core",
        spans={
            "model call": {"entity.type": "agent", "span.type": "llm"},
            "tool": {"entity.type": "agent", "span.type": "tool", "tool.name": "some_tool"},
            "agent": {"entity.type": "agent"},
        },
    ),
)
