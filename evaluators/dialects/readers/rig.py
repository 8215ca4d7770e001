"""rig (Rust): the conventions, under the scope of the application; `target` names the module that made the span.

Without a span of the application's own around it, each step of its agent is a trace: the agent's span has question,
answer and the sums of the counts, and what it calls is beside it.
"""

from evaluators.dialects.content.facts import Facts
from evaluators.dialects.decoding.values import string
from evaluators.dialects.dialect import Dialect, has
from evaluators.dialects.readers import genai
from evaluators.model import Span

_TARGET = "target"


def _read(span: Span) -> Facts:
    target = string(span.attributes.get(_TARGET)) or ""
    if not target.startswith("rig::"):
        return genai.read(span)
    facts = genai.read(span, "rig")
    facts.is_step = facts.kind in ("llm", "tool") and target.startswith("rig::agent")
    return facts


RIG = Dialect(
    name="rig",
    speaks=has(_TARGET) & has("busy_ns", "idle_ns") & genai.SPEAKS,
    read=_read,
    advice="""
        no_tool_definitions: (no setting)
            it never exports the tools that a model was offered
            a recording of rig under opentelemetry-rust 0.31
        no_session: tracing::info_span!("turn", session.id = "...")
            around each turn: then its steps are one trace as well
            a recording of rig under opentelemetry-rust 0.31
    """,
)
