"""Where each log record of a trace goes: to the span it belongs to, to a span of its own, or nowhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from evaluators.dialects.enrichment import claude_code, codex, gemini_family, words
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.dialects.enrichment.records import body_of, event_of, is_record
from evaluators.dialects.turns.place import AgentEvent, Place
from evaluators.dialects.turns.registry import agent_of_record
from evaluators.model import Span

# The root of a made turn: the prompt of a person, from whose record hangs all that has no parent in the trace.


def under_prompt(spans: list[Span]) -> list[Span]:
    """The spans, in their order, hung from the first prompt; unchanged where no record is a person's prompt."""
    prompt = next((span for span in spans if is_record(span) and _is_prompt(span)), None)
    if prompt is None:
        return spans
    ids = {span.span_id for span in spans}
    return [_hung(span, prompt.span_id, ids) for span in spans]


def _hung(span: Span, root: str, ids: set[str]) -> Span:
    if span.span_id == root:
        return msgspec.structs.replace(span, parent_span_id="")
    if span.parent_span_id in ids:
        return span
    return msgspec.structs.replace(span, parent_span_id=root)


def _is_prompt(record: Span) -> bool:
    agent = agent_of_record(record.scope)
    if agent is None:
        return False
    event = AgentEvent(
        name=event_of(record),
        time_unix_nano=record.start_time_unix_nano,
        scope=record.scope,
        attributes=record.attributes,
        body=body_of(record),
        resource=record.resource,
    )
    place = agent.place(event)
    return isinstance(place, Place) and place.is_prompt


Enricher = Callable[[Ledger, Sequence[Span]], None]
ENRICHERS: Mapping[str, Enricher] = {
    "claude_code": claude_code.enrich,
    "codex": codex.enrich,
    "gemini_cli": gemini_family.GEMINI_CLI.enrich,
    "qwen_code": gemini_family.QWEN_CODE.enrich,
}
"""By the name of the agent that made the records; those of all others add words."""


class EnrichedSpans(NamedTuple):
    spans: list[Span]
    """In order of (start, span id): those that were sent, and the records that stand for themselves."""
    records: tuple[str, ...]  # ids of the records whose words other spans have


def enrich(spans: Sequence[Span]) -> EnrichedSpans:
    """The spans with the words of the records among them, whichever came first.

    Words of SDKs are read as if their span had carried them. A trace without records is given back as it is.
    """
    if not any(map(is_record, spans)):
        return EnrichedSpans([*spans], ())
    ledger = Ledger(spans)
    by_enricher: dict[Enricher, list[Span]] = {}
    for record in ledger.records:
        agent = agent_of_record(record.scope)
        enricher = words.enrich if agent is None else ENRICHERS[agent.name]
        by_enricher.setdefault(enricher, []).append(record)
    for enricher, records in by_enricher.items():
        enricher(ledger, records)
    standing = ledger.spans or ledger.records  # words alone, whose spans did not come
    return EnrichedSpans(under_prompt(standing), ledger.merged)
