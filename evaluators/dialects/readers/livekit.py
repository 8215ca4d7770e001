"""LiveKit Agents (voice): the conventions on `llm_request`, and `lk.*` on turns and tools.

A conversation is one trace, `agent_session`; the spans named `agent_turn` are its turns, several of one `lk.speech_id`
where an answer goes on after a tool. What people said and what was done has `pii` in its keys since 1.6.
"""

from evaluators.dialects import fields
from evaluators.dialects.content.facts import Facts, Kind
from evaluators.dialects.decoding.values import string
from evaluators.dialects.dialect import Dialect, Sample, scope_is
from evaluators.dialects.readers import genai

_TOOL = "lk.function_tool.name"


def _both(name: str) -> tuple[str, str]:
    return f"lk.pii.{name}", f"lk.{name}"


def _kind(facts: Facts) -> Kind:
    if _TOOL in facts.span.attributes:
        return "tool"
    return "agent" if facts.span.name == "agent_turn" else facts.kind


def _finish(facts: Facts) -> None:
    if facts.kind == "agent":
        facts.turn = string(facts.span.attributes.get("lk.speech_id")) or facts.span.span_id


LIVEKIT = Dialect(
    name="livekit",
    speaks=scope_is("livekit-agents"),
    base=genai.read,
    kind=_kind,
    fields={
        "tool": (
            fields.tool_name(_TOOL),
            fields.tool_id("lk.function_tool.id"),
            fields.arguments(*_both("function_tool.arguments")),
            fields.result(*_both("function_tool.output")),
        ),
        "agent": (
            fields.input_from(*_both("user_input")),
            fields.output_from(*_both("response.text")),
        ),
    },
    finish=_finish,
    sample=Sample(
        scope="livekit-agents",
        spans={
            "tool": {"lk.function_tool.name": "some_tool"},
            "agent": {"gen_ai.operation.name": "invoke_agent"},
        },
    ),
    advice="""
        no_session: set_tracer_provider(provider, metadata={"langfuse.session.id": "..."})
            from livekit.agents.telemetry, in each job
            docs.livekit.io/agents/observability
        content: set_tracer_provider(provider, allow_pii=True)
            from livekit.agents.telemetry: without it newer versions strip what was said before any exporter
            source of livekit-agents, telemetry/pii.py
    """,
)
