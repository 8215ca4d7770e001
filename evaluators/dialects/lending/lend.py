"""Where each log record of a trace goes: to the span it belongs to, to a span of its own, or nowhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from evaluators.dialects.lending import claude_code, codex, gemini_cli, qwen_code, words
from evaluators.dialects.lending.ledger import Ledger
from evaluators.dialects.lending.records import is_record
from evaluators.dialects.lending.roots import under_prompt
from evaluators.dialects.turns.registry import agent_of_record
from evaluators.model import Span

Lender = Callable[[Ledger, Sequence[Span]], None]
LENDERS: Mapping[str, Lender] = {
    "claude_code": claude_code.lend,
    "codex": codex.lend,
    "gemini_cli": gemini_cli.lend,
    "qwen_code": qwen_code.lend,
}
"""By the name of the agent that made the records; those of all others lend words."""


class LentSpans(NamedTuple):
    spans: list[Span]
    """In order of (start, span id): those that were sent, and the records that stand for themselves."""
    records: tuple[str, ...]  # ids of the records that lent words to other spans


def lend(spans: Sequence[Span]) -> LentSpans:
    """The spans with the words of the records among them, whichever came first.

    Words of SDKs are read as if their span had carried them. A trace without records is given back as it is.
    """
    if not any(map(is_record, spans)):
        return LentSpans([*spans], ())
    ledger = Ledger(spans)
    by_lender: dict[Lender, list[Span]] = {}
    for record in ledger.records:
        agent = agent_of_record(record.scope)
        lender = words.lend if agent is None else LENDERS[agent.name]
        by_lender.setdefault(lender, []).append(record)
    for lender, records in by_lender.items():
        lender(ledger, records)
    standing = ledger.spans or ledger.records  # words alone, whose spans did not come
    return LentSpans(under_prompt(standing), ledger.lent)
