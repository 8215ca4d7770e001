"""Pipecat (voice): the conventions' names and counts, and a model call's sides as `input`, `output` and `tools`.

A conversation is one trace; the spans named `turn` are its turns. Spans of speech services carry no words of a model.
"""

from evaluators.dialects import fields
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.dialect import Dialect, Sample, scope
from evaluators.dialects.readers import genai

_TOOL = "tool.function_name"
_MODEL = frozenset({"llm_request", "llm_response"})
"""Speech to speech: what is sent and what comes back have spans of their own."""


def _kind(facts: Facts) -> Kind:
    if _TOOL in facts.span.attributes:
        return "tool"
    return "llm" if facts.span.attributes.get("gen_ai.operation.name") in _MODEL else facts.kind


def _finish(facts: Facts) -> None:
    if "turn.number" in facts.span.attributes:
        facts.turn = facts.span.span_id
    if facts.span.attributes.get("tool.result_status") == "error":
        facts.tool_error = "error"


PIPECAT = Dialect(
    name="pipecat",
    speaks=scope("pipecat"),
    base=genai.read,
    kind=_kind,
    fields={
        "llm": (
            fields.input_from("input"),
            fields.output_from("output"),
            fields.definitions("tools", "tools.definitions"),
        ),
        "tool": (
            fields.over(fields.tool_name(_TOOL)),
            fields.tool_id("tool.call_id"),
            fields.arguments("tool.arguments"),
            fields.result("tool.result"),
        ),
    },
    finish=_finish,
    sample=Sample(
        scope="pipecat",
        spans={
            "model call": {"gen_ai.operation.name": "chat"},
            "tool": {"tool.function_name": "some_tool"},
        },
    ),
    advice="""
        no_session: PipelineTask(..., enable_tracing=True, conversation_id="...")
            docs.pipecat.ai/server/utilities/opentelemetry
        content: (no setting)
            it writes what its LLM services are sent and answer wherever enable_tracing is on; calls of tools are
            in the messages of the next call only
            source of pipecat, utils/tracing/service_attributes.py
    """,
)
