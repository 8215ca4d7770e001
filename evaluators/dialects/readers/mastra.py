"""Mastra before 1.0: `mastra.span.type` is a span's kind, `input` and `output` are its two sides.

Since 1.0 its exporter writes the conventions, and its spans are read as such; only a model's step is still its own.
"""

from evaluators.dialects import fields
from evaluators.dialects.content.facts import Content, Facts, Kind
from evaluators.dialects.decoding.values import as_dict, unwrap
from evaluators.dialects.dialect import By, Dialect, has, kinds, sample_by, scope_is
from evaluators.dialects.readers import genai
from evaluators.dialects.readers.genai_tools import tool_in_span_name
from evaluators.model import JSON

_TYPE = "mastra.span.type"
_STEP = "mastra.model_step.input"
_by_type = By(
    _TYPE,
    kinds=kinds(
        llm="model_generation llm_generation",
        tool="tool_call mcp_tool_call",
        agent="agent_run workflow_run",
    ),
)
_SIDES = (fields.input_from("input"), fields.output_from("output"))


def _kind(facts: Facts) -> Kind:
    return facts.kind if _STEP in facts.span.attributes else _by_type(facts)


def _tools(request: JSON) -> Content:
    return Content(lambda: as_dict(as_dict(unwrap(request)).get("body")).get("tools"), "input")


def _finish(facts: Facts) -> None:
    attributes = facts.span.attributes
    get = attributes.get
    if _STEP in attributes:
        facts.definitions = _tools(get(_STEP))
    elif get(_TYPE) == "model_step" and "input" in attributes:
        facts.definitions = _tools(get("input"))


MASTRA = Dialect(
    name="mastra",
    speaks=(scope_is("@mastra/otel") & has(_TYPE)) | has(_STEP),
    base=genai.read,
    based=has(_STEP),
    kind=_kind,
    fields={
        # A generation is all steps of one run; its counts are their sum.
        "llm": (*_SIDES, fields.tokens(), fields.model("gen_ai.request.model")),
        "tool": (
            fields.tool_name("gen_ai.tool.name", default=tool_in_span_name),
            fields.arguments("input"),
            fields.result("output"),
        ),
        "agent": (
            *_SIDES,
            fields.agent(
                "gen_ai.agent.name",
                "gen_ai.agent.id",
                beside=("workflow.id",),
                default=fields.span_name,
            ),
        ),
    },
    finish=_finish,
    reads=(fields.row("tools offered", "step", _STEP),),
    scopes=("@mastra/",),
    advice="""
        no_session: agent.generate(..., {tracingOptions: {metadata: {sessionId: "..."}}})
            source of the package @mastra/otel-exporter
    """,
    sample=sample_by(
        "mastra.span.type",
        call="model_generation",
        tool="tool_call",
        agent="agent_run",
        step="model_step",
        scope="@mastra/otel",
    ),
)
