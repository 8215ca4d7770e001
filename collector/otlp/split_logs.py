"""Splits requests whose spans may belong to made traces: of log records, and of the agents that send spans beside them.

What is made of them is a request of spans, and is split as one. A segment's record has its owner's key in the log.
"""

from collections.abc import Iterable

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.otlp.carried_logs import PlacedEvent, add_segment, carry_logs, service_of
from collector.otlp.made_spans import plain_attributes
from collector.otlp.segment import Segments
from collector.otlp.split import Piece, SplitRequest, split_by_trace
from evaluators.dialects.turns.place import AgentEvent, LogAgent, Place
from evaluators.dialects.turns.registry import SPAN_SCOPES, agent_of_span, place_span

# Claude Code, Gemini CLI and Qwen Code send spans beside their log records, under trace ids that are not those of
# turns. These spans go to the owner of the session, and join the turns that records make.

_NAMES = tuple(name.encode() for name in SPAN_SCOPES)
_Sent = tuple[ScopeSpans, Span]


def may_be_carried(scopes: Iterable[memoryview]) -> bool:
    """Whether one of these undecoded scopes names such an agent.

    A request is not searched for the names: to look at every byte of it costs as much as to parse it.
    """
    return any(name in scope for scope in map(bytes, scopes) for name in _NAMES)


def carry_spans(request: bytes) -> tuple[bytes, Segments] | None:
    """The request with the spans of such agents in segments; None: it has none of them, or cannot be parsed."""
    try:
        sent = ExportTraceServiceRequest.FromString(request)
    except DecodeError:
        return None
    segments, out = Segments(), ExportTraceServiceRequest()
    for group in sent.resource_spans:
        agents = (agent_of_span(scope.scope.name) for scope in group.scope_spans)
        agent = next((each for each in agents if each is not None), None)
        if agent is None:
            out.resource_spans.append(group)
        else:
            _carry(group, agent, out, segments)
    if not segments:
        return None
    return out.SerializeToString(deterministic=True), segments


def _carry(
    group: ResourceSpans, agent: LogAgent, out: ExportTraceServiceRequest, segments: Segments
) -> None:
    resource = plain_attributes(group.resource.attributes)
    spans = [(scope, span) for scope in group.scope_spans for span in scope.spans]
    invalid = [each for each in spans if not _is_valid(each[1])]
    if invalid:
        _leave(group, invalid, out)  # to be rejected as they are
    for family in _families(each for each in spans if _is_valid(each[1])):
        placed: list[PlacedEvent] = []
        for scope, span in family:
            event = AgentEvent(
                name=span.name,
                time_unix_nano=span.start_time_unix_nano,
                scope=scope.scope.name,
                attributes=plain_attributes(span.attributes),
                resource=resource,
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                is_span=True,
            )
            place = place_span(event, agent)
            placed.append(
                PlacedEvent(
                    event=event,
                    span=span,
                    place=place or _NOWHERE,
                    scope=scope.scope,
                    schema_url=scope.schema_url,
                )
            )
        place = next((each.place for each in placed if each.place is not _NOWHERE), None)
        if place is None:
            _leave(group, family, out)
            continue
        placed[0].place = place
        add_segment(out, segments, placed, service_of(resource), group, has_spans=True)


_NOWHERE = Place(session="")


def _is_valid(span: Span) -> bool:
    ids = span.trace_id, span.span_id
    return (len(ids[0]), len(ids[1])) == (16, 8) and all(map(any, ids))


def _families(spans: Iterable[_Sent]) -> list[list[_Sent]]:
    """The spans that have the same topmost ancestor in the request, each family in the order of their starts."""
    ordered = sorted(spans, key=lambda each: each[1].start_time_unix_nano)
    by_id = {(span.trace_id, span.span_id): span for _, span in ordered}
    tops: dict[tuple[bytes, bytes], tuple[bytes, bytes]] = {}
    families: dict[tuple[bytes, bytes], list[_Sent]] = {}
    for scope, span in ordered:
        way: list[tuple[bytes, bytes]] = []
        key = (span.trace_id, span.span_id)
        while key not in tops:
            tops[key] = key  # spans that call each other parents end here
            way.append(key)
            parent = (key[0], by_id[key].parent_span_id)
            key = parent if parent in by_id else key
        for each in way:
            tops[each] = tops[key]
        families.setdefault(tops[key], []).append((scope, span))
    return list(families.values())


def _leave(group: ResourceSpans, family: list[_Sent], out: ExportTraceServiceRequest) -> None:
    kept = ResourceSpans(resource=group.resource, schema_url=group.schema_url)
    for scope, span in family:
        kept.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url, spans=[span])
    out.resource_spans.append(kept)


def split_logs(request: bytes, *, max_item: int, joined: int = 0) -> SplitRequest:
    """As `split_by_trace`, of log records; counted in records: what was dropped was taken in."""
    carried = carry_logs(request)
    split = split_by_trace(carried.request, max_item=max_item, joined=joined)
    _key(split, carried.segments)
    split.accepted = carried.records - split.rejected
    split.add(carried.repaired)
    split.dropped, split.unread = carried.dropped, carried.unread
    split.request = carried.repaired.request if carried.repaired.repaired else None
    return split


def split_traces(request: bytes, *, max_item: int, joined: int = 0) -> SplitRequest:
    """As `split_by_trace`: once, which is all for nearly every request; again where spans of made traces have moved."""
    split = split_by_trace(request, max_item=max_item, joined=joined)
    carried = carry_spans(request) if may_be_carried(split.scopes) else None
    if carried is None:
        return split
    split = split_by_trace(carried[0], max_item=max_item, joined=joined)
    _key(split, carried[1])
    if split.request is not None:
        split.request = request  # as it was sent
    return split


def _key(split: SplitRequest, segments: Segments) -> None:
    split.pieces = [
        Piece(segments[each.key].owner, each.value) if each.key in segments else each
        for each in split.pieces
    ]
