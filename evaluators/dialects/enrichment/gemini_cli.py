"""Gemini CLI: answers carry no ids of their own, and a tool's record has the id of the batch around its span."""

from collections.abc import Sequence

from evaluators.dialects.enrichment.gemini_family import Family, JoiningTurn
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.model import Span


def _tool_span(ledger: Ledger, record: Span) -> Span | None:
    name = record.attributes.get("function_name")
    return ledger.claim(record.parent_span_id, "tool_call", "gen_ai.tool.name", name)


_FAMILY = Family(
    prefix="gemini_cli.",
    prompt_spans=frozenset({"user_prompt"}),
    model_span="llm_call",
    agent_span="agent_call",
    tool_span=_tool_span,
)


def enrich(ledger: Ledger, records: Sequence[Span]) -> None:
    JoiningTurn(_FAMILY, ledger).enrich(records)
