"""The root of a made turn: the prompt of a person, from whose record hangs all that has no parent in the trace."""

import msgspec

from evaluators.dialects.lending.records import body_of, event_of, is_record
from evaluators.dialects.turns.place import AgentEvent, Place
from evaluators.dialects.turns.registry import agent_of_record
from evaluators.model import Span


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
