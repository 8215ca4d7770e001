"""Words that an SDK moved from its span to log events: they are read as if the span had carried them.

GenAI conventions: `gen_ai.client.inference.operation.details` has the attributes of the span; the older
`gen_ai.<role>.message` and `gen_ai.choice` are its events, in Semantic Kernel with a body in JSON. AWS's distribution
takes attributes and events off the span and sends one record, `{"input": ..., "output": ...}` (`aws_bodies`). Spring
AI 1.x writes them with loggers (`spring_ai`).
"""

from collections.abc import Mapping, Sequence

import msgspec

from evaluators.dialects.decoding.decode import DETAILS
from evaluators.dialects.decoding.values import as_dict, unwrap
from evaluators.dialects.enrichment import aws_bodies, spring_ai
from evaluators.dialects.enrichment.ledger import Ledger
from evaluators.dialects.enrichment.records import (
    AddedAttributes,
    MergedAttributes,
    body_of,
    event_of,
)
from evaluators.dialects.turns.words import is_aws_body
from evaluators.model import JSON, Event, Span

_PREFIX = "gen_ai."
_INDEX = "CHAT_MESSAGE_INDEX"
"""Semantic Kernel: where in the request a message is."""
_MODEL_CALL: Mapping[str, JSON] = {"gen_ai.operation.name": "chat"}
"""What is known of a span that did not come: only model calls have such events."""


def enrich(ledger: Ledger, records: Sequence[Span]) -> None:
    """Each record's words to its parent; a record that has none to give is as it is."""
    orphans: dict[str, list[Span]] = {}
    for record in sorted(records, key=_order):
        name = event_of(record)
        span = ledger.get(record.parent_span_id)
        if name == DETAILS:
            if span is None:
                ledger.stand(record)
            else:
                said = AddedAttributes(record.attributes)
                ledger.enrich(record, span, MergedAttributes(said, as_dict(body_of(record))))
        elif name.startswith(_PREFIX):
            if span is None:
                orphans.setdefault(record.parent_span_id, []).append(record)
            else:
                ledger.add_events(record, span.span_id, (_event(record),))
        elif span is not None:
            _add_body(ledger, record, span)
        elif not (spring_ai.is_one(record) or is_aws_body(body_of(record))):
            ledger.stand(record)
    for events in orphans.values():
        _stand_together(ledger, events)


def _add_body(ledger: Ledger, record: Span, span: Span) -> None:
    if spring_ai.is_one(record):
        ledger.enrich(record, span, spring_ai.words(record))
    elif is_aws_body(body_of(record)):
        aws_bodies.enrich(ledger, record, span)
    else:
        ledger.stand(record)


def _order(record: Span) -> tuple[int, int]:
    index = record.attributes.get(_INDEX)
    return record.start_time_unix_nano, index if isinstance(index, int) else 0


def _event(record: Span) -> Event:
    body = unwrap(body_of(record))
    return Event(
        name=event_of(record),
        time_unix_nano=record.start_time_unix_nano,
        attributes=as_dict(body) if isinstance(body, dict) else {"gen_ai.event.content": body},
    )


def _stand_together(ledger: Ledger, records: Sequence[Span]) -> None:
    first, others = records[0], records[1:]
    call = msgspec.structs.replace(
        first,
        attributes=MergedAttributes(first.attributes, _MODEL_CALL),
        events=(_event(first),),
        end_time_unix_nano=records[-1].end_time_unix_nano,
    )
    ledger.stand(call)
    for record in others:
        ledger.add_events(record, call.span_id, (_event(record),))
