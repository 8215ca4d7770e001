"""The traces of a recording of log records and spans, made without the collector: `evaluators` is tested by itself.

Records become spans, and turns are put together, in the form in which the receiver and assembly do it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from evaluators.dialects.read import read_trace
from evaluators.dialects.turns.place import AgentEvent, Place, turn_trace_id
from evaluators.dialects.turns.registry import agent_of_span, place_record, place_span
from evaluators.model import JSON, Trace
from tests.support.recordings import requests


class _Placed(NamedTuple):
    """A span, with where it belongs; None: in the trace whose id it has."""

    time: int
    resource: Resource
    scope: InstrumentationScope
    span: Span
    place: Place | None
    event: AgentEvent
    digest: str


def traces(folder: Path, scenario: str) -> Iterator[Trace]:
    """Every trace of one recording: `<scenario>.logs.otlp` and `<scenario>.otlp`, each where it is there."""
    for trace_id, own in pieces(folder, scenario).items():
        yield read_trace(own, trace_id=trace_id, closed="idle")


def pieces(folder: Path, scenario: str) -> Mapping[str, list[bytes]]:
    """Trace id -> the requests with its spans, those that stand for log records too."""
    placed: list[_Placed] = []
    logs, spans = folder / f"{scenario}.logs.otlp", folder / f"{scenario}.otlp"
    for request in requests(logs) if logs.exists() else ():
        placed += _of_logs(ExportLogsServiceRequest.FromString(request))
    for request in requests(spans) if spans.exists() else ():
        placed += _of_spans(ExportTraceServiceRequest.FromString(request))
    return _pieces(placed)


def made_span(record: LogRecord, event: AgentEvent) -> Span:
    """The span that stands for a log record."""
    digest = hashlib.sha256(event.scope.encode() + record.SerializeToString()).digest()
    span = Span(
        trace_id=record.trace_id,
        span_id=digest[:8],
        parent_span_id=record.span_id or digest[8:16],
        name=event.name,
        start_time_unix_nano=event.time_unix_nano,
        end_time_unix_nano=event.time_unix_nano,
        attributes=record.attributes,
    )
    span.attributes.add(key="spanwise.log.event").value.string_value = event.name
    if record.HasField("body"):
        span.attributes.add(key="spanwise.log.body").value.CopyFrom(record.body)
    return span


def _of_logs(message: ExportLogsServiceRequest) -> Iterator[_Placed]:
    for resource_logs in message.resource_logs:
        resource = _values(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                attributes = _values(record.attributes)
                event = AgentEvent(
                    name=str(attributes.get("event.name") or record.event_name),
                    time_unix_nano=record.time_unix_nano or record.observed_time_unix_nano,
                    scope=scope_logs.scope.name,
                    attributes=attributes,
                    body=_value(record.body),
                    resource=resource,
                    trace_id=record.trace_id.hex(),
                    span_id=record.span_id.hex(),
                )
                place = place_record(event)
                if not isinstance(place, str):
                    span = made_span(record, event)
                    digest = hashlib.sha256(span.SerializeToString()).hexdigest()
                    yield _Placed(
                        event.time_unix_nano,
                        resource_logs.resource,
                        scope_logs.scope,
                        span,
                        place,
                        event,
                        digest,
                    )


def _of_spans(message: ExportTraceServiceRequest) -> Iterator[_Placed]:
    for resource_spans in message.resource_spans:
        agents = (agent_of_span(each.scope.name) for each in resource_spans.scope_spans)
        agent = next((agent for agent in agents if agent is not None), None)
        resource = _values(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                event = AgentEvent(
                    name=span.name,
                    time_unix_nano=span.start_time_unix_nano,
                    scope=scope_spans.scope.name,
                    attributes=_values(span.attributes),
                    resource=resource,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    is_span=True,
                )
                place = None if agent is None else place_span(event, agent)
                yield _Placed(
                    span.start_time_unix_nano,
                    resource_spans.resource,
                    scope_spans.scope,
                    span,
                    place,
                    event,
                    "",
                )


def _pieces(placed: list[_Placed]) -> Mapping[str, list[bytes]]:
    """Trace id -> the requests with its spans."""
    places = [(each, each.place) for each in placed if each.place is not None]
    helpers = {p.helper_session: p.session for _, p in places if p.helper_session}
    no_turns = {p.turn for _, p in places if p.is_helper}
    owned = {
        each.event.trace_id: p.turn
        for each, p in places
        if p.owns_trace and each.event.trace_id and p.turn and p.turn not in no_turns
    }
    prompts: dict[str, list[tuple[int, str]]] = {}
    for each, p in places:
        if p.is_prompt:
            turn = p.turn or each.digest
            prompts.setdefault(_outermost(p.session, helpers), []).append((each.time, turn))
    found: dict[str, list[bytes]] = {}
    for each in placed:
        trace_id = each.span.trace_id
        if each.place is not None:
            session = _outermost(each.place.session, helpers)
            turn = each.place.turn if each.place.turn not in no_turns else ""
            turn = turn or owned.get(each.event.trace_id, "")
            before = sorted(p for p in prompts.get(session, ()) if p[0] <= each.time)
            turn = turn or (before[-1][1] if before else "")
            service = str(each.event.resource.get("service.name"))
            trace_id = turn_trace_id(service, session, turn)
        found.setdefault(trace_id.hex(), []).append(_piece(each, trace_id))
    return found


def _outermost(session: str, helpers: Mapping[str, str]) -> str:
    while session in helpers:
        session = helpers[session]
    return session


def _piece(placed: _Placed, trace_id: bytes) -> bytes:
    message = ExportTraceServiceRequest()
    resource_spans = message.resource_spans.add(resource=placed.resource)
    scope_spans = resource_spans.scope_spans.add(scope=placed.scope)
    scope_spans.spans.append(placed.span)
    scope_spans.spans[0].trace_id = trace_id
    return message.SerializeToString()


def _values(attributes: Any) -> dict[str, JSON]:
    pairs: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> JSON:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _values(value.kvlist_value.values)
    return None if kind is None else getattr(value, kind)
