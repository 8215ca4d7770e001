"""Qwen Code: records carry the id of their span, but for calls that were refused, which name the call."""

from collections.abc import Sequence

from evaluators.dialects.enrichment.gemini_family import Family, JoiningTurn
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.model import Span

_TOOL = "qwen-code.tool"


def _tool_span(ledger: Ledger, record: Span) -> Span | None:
    span = ledger.get(record.parent_span_id)
    if span is not None and span.name == _TOOL:
        return span
    call = record.attributes.get("call_id")
    return ledger.find(_TOOL, "call_id", call) if isinstance(call, str) else None


_FAMILY = Family(
    prefix="qwen-code.",
    prompt_spans=frozenset({"qwen-code.interaction"}),
    model_span="qwen-code.llm_request",
    agent_span="qwen-code.subagent",
    tool_span=_tool_span,
)


def enrich(ledger: Ledger, records: Sequence[Span]) -> None:
    JoiningTurn(_FAMILY, ledger).enrich(records)
