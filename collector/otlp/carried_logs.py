"""A request of log records as a request of spans, and which of them belong to made traces. Pure.

What belongs to no agent is left out and counted: it is not worth a place in the log.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from collector.base.errors import Undecodable
from collector.otlp.made_spans import event_of, made_span, plain_attributes
from collector.otlp.repair import DecodedRequest, repair_logs
from collector.otlp.segment import Segment, Segments, segment_id, trace_state
from collector.otlp.sent_form import keep_record, keep_span
from collector.otlp.walk import LARGE_SPAN
from collector.otlp.wire import RequestBudget, fields
from evaluators.dialects.turns.place import (
    AgentEvent,
    Place,
    owner_id,
    session_mark,
    turn_trace_id,
)
from evaluators.dialects.turns.registry import place_record
from evaluators.model import JSON

_GROUPS = 0x0A  # field 1 of the request
_ITEMS = 0x12  # field 2 of ResourceLogs, and of ScopeLogs


@dataclass(slots=True, kw_only=True)
class Carried:
    """A request of spans that is written in place of what was sent."""

    request: bytes = b""  # an ExportTraceServiceRequest; empty where nothing is to be written
    segments: Segments = field(default_factory=Segments)  # the segments among its spans
    dropped: Counter[str] = field(default_factory=Counter[str])
    """Records that are not written, by reason."""
    unread: set[int] = field(default_factory=set[int])  # their places in the request
    records: int = 0  # records that were read
    repaired: DecodedRequest  # the request as it was read


@dataclass(slots=True, kw_only=True)
class PlacedEvent:
    """An event with its span, and where it belongs."""

    event: AgentEvent
    span: Span
    place: Place
    scope: InstrumentationScope
    schema_url: str = ""  # of the scope


def carry_logs(request: bytes) -> Carried:
    """The records of an ExportLogsServiceRequest as spans.

    Raises Undecodable: it is not one. Raises TooLarge: it has more fields or records than one request may have.
    """
    bound(request)
    repaired = DecodedRequest(request)
    try:
        logs = ExportLogsServiceRequest.FromString(request)
    except DecodeError:
        repaired = _repaired(request)
        logs = ExportLogsServiceRequest.FromString(repaired.request)
    carried, out = Carried(repaired=repaired), ExportTraceServiceRequest()
    for group in logs.resource_logs:
        resource = plain_attributes(group.resource.attributes)
        service = service_of(resource)
        origin = service.encode(errors="surrogatepass")
        placed: list[PlacedEvent] = []
        enriching = ResourceSpans(resource=group.resource, schema_url=group.schema_url)
        for scope in group.scope_logs:
            words: list[Span] = []
            for record in scope.log_records:
                at = carried.records
                carried.records += 1
                event = event_of(record, scope.scope.name, resource)
                place = place_record(event)
                if isinstance(place, str):
                    carried.dropped[place] += 1
                    carried.unread.add(at)
                    continue
                span = made_span(record, event, origin=origin)
                keep_record(span, record)
                if place is None:
                    words.append(span)
                else:
                    placed.append(
                        PlacedEvent(
                            event=event,
                            span=span,
                            place=place,
                            scope=scope.scope,
                            schema_url=scope.schema_url,
                        )
                    )
            if words:
                enriching.scope_spans.add(
                    scope=scope.scope, schema_url=scope.schema_url, spans=words
                )
        if enriching.scope_spans:
            out.resource_spans.append(enriching)
        for run in runs(placed):
            add_segment(out, carried.segments, run, service, group)
    carried.request = out.SerializeToString(deterministic=True) if out.resource_spans else b""
    return carried


def bound(request: bytes) -> None:
    """Count what a request holds before a parser makes objects of it.

    Raises Undecodable: it cannot be walked. Raises TooLarge: it has more fields or records than one request may have.
    """
    budget = RequestBudget()
    for tag, _, start, end in fields(request, 0, len(request), budget):
        if tag != _GROUPS:
            continue
        for inner, _, position, stop in fields(request, start, end, budget):
            if inner != _ITEMS:
                continue
            for kind, _, value, below in fields(request, position, stop, budget):
                if kind != _ITEMS:
                    continue
                budget.add_span()
                if below - value > LARGE_SPAN:
                    deque(fields(request, value, below, budget), maxlen=0)


def _repaired(request: bytes) -> DecodedRequest:
    try:
        return repair_logs(request)
    except Undecodable as error:
        raise Undecodable("the body is not an ExportLogsServiceRequest") from error


def service_of(resource: Mapping[str, JSON]) -> str:
    name = resource.get("service.name")
    return name if isinstance(name, str) else ""


def runs(placed: Iterable[PlacedEvent]) -> list[list[PlacedEvent]]:
    """Events of one request, in the order of their times, together where their turn is surely the same.

    A prompt begins a run; those after it in its session follow it, unless they name another turn.
    """
    current: dict[str, list[PlacedEvent]] = {}
    named: dict[tuple[str, str], list[PlacedEvent]] = {}
    found: list[list[PlacedEvent]] = []
    for each in sorted(placed, key=lambda one: one.event.time_unix_nano):
        place = each.place
        if place.turn and not place.is_prompt and not place.is_helper:
            run = named.get((place.session, place.turn))
            if run is None:
                run = named[place.session, place.turn] = list[PlacedEvent]()
                found.append(run)
        elif place.is_prompt or place.is_helper or place.helper_session:
            run = list[PlacedEvent]()
            found.append(run)
            if place.turn:
                named[place.session, place.turn] = run
            if place.is_prompt:
                current = {
                    place.session: run
                }  # what a helper's session does next may be of this turn
        else:
            run = current.get(place.session)
            if run is None:
                run = current[place.session] = list[PlacedEvent]()
                found.append(run)
        run.append(each)
    return found


def add_segment(
    out: ExportTraceServiceRequest,
    segments: Segments,
    run: list[PlacedEvent],
    service: str,
    sent: ResourceSpans | ResourceLogs,
    *,
    has_spans: bool = False,
) -> None:
    """Add the events, which were `sent` in one group, as one segment of one service's."""
    first = run[0]
    place = first.place
    session = place.session
    turn = place.turn
    if place.is_prompt and not turn:
        turn = first.span.span_id.hex()
    segment = Segment(
        owner=owner_id(service, place),
        session=session_mark(service, session),
        start=first.event.time_unix_nano,
        turn=turn_trace_id(service, session, turn) if turn else b"",
        traces=tuple(
            sorted({bytes.fromhex(each.event.trace_id) for each in run if each.event.trace_id})
        ),
        is_prompt=place.is_prompt,
        is_helper=place.is_helper,
        owns_traces=place.owns_trace,
        is_end=any(each.place.is_end for each in run),
        helper_session=session_mark(service, place.helper_session) if place.helper_session else b"",
        has_spans=has_spans,
    )
    state, trace_id = trace_state(segment), segment_id(segment, first.span.span_id)
    segments[trace_id] = segment
    group = out.resource_spans.add(resource=sent.resource, schema_url=sent.schema_url)
    by_scope: dict[str, list[Span]] = {}
    scopes: dict[str, PlacedEvent] = {}
    for each in run:
        if has_spans:
            keep_span(each.span)
        each.span.trace_id = trace_id
        each.span.trace_state = state
        by_scope.setdefault(each.scope.name, []).append(each.span)
        scopes[each.scope.name] = each
    for name, spans in by_scope.items():
        scope = scopes[name]
        group.scope_spans.add(scope=scope.scope, schema_url=scope.schema_url, spans=spans)
