"""Hand-made OTLP spans for tests: a request from a few short lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from evaluators.dialects.content.sessions import Keys
from evaluators.dialects.decoding.values import as_dict, as_list
from evaluators.dialects.read import read_trace
from evaluators.model import Trace

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
NAME = "name of the span"
"""Among attributes that stand for a span."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanSpec:
    """One span. Ids are small numbers, parent 0 means none, times are milliseconds.

    Without an id, `trace_of` gives it what it lacks by its place: id, parent, times and scope.
    """

    id: int = 0
    parent: int = 0
    name: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    events: Sequence[tuple[str, Mapping[str, Any]]] = ()
    start: int = 0
    end: int = 0
    status: int = 0
    message: str = ""
    scope: str = ""
    flags: int = 0
    dropped: int = 0
    kind: int = 0


def dotted(**attributes: Any) -> dict[str, Any]:
    """Attributes by names in which `a__b` stands for `a.b`."""
    return {key.replace("__", "."): value for key, value in attributes.items()}


def under(prefix: str, /, **attributes: Any) -> dict[str, Any]:
    """Attributes whose keys all begin with `prefix`; `a__b` stands for `a.b`."""
    return {f"{prefix}{key}": value for key, value in dotted(**attributes).items()}


def changed(span: SpanSpec, /, *without: str, **attributes: Any) -> SpanSpec:
    """The span with other values of `attributes` (`a__b` stands for `a.b`), and without some."""
    kept = {key: value for key, value in span.attributes.items() if key not in without}
    return replace(span, attributes=kept | dotted(**attributes))


def any_value(value: Any) -> AnyValue:
    """A Python value as OTLP's."""
    made = AnyValue()
    if isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, int):
        made.int_value = value
    elif isinstance(value, float):
        made.double_value = value
    elif isinstance(value, str):
        made.string_value = value
    elif isinstance(value, bytes):
        made.bytes_value = value
    elif isinstance(value, list):
        made.array_value.values.extend(any_value(item) for item in as_list(value))
    elif isinstance(value, dict):
        made.kvlist_value.values.extend(key_values(as_dict(value)))
    return made


def key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as OTLP has them."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def request(
    *spans: SpanSpec,
    resource: Mapping[str, Any] | None = None,
    trace_id: str = TRACE_ID,
) -> bytes:
    """One ExportTraceServiceRequest with these spans."""
    made = ExportTraceServiceRequest()
    resource_spans = made.resource_spans.add()
    given = {"service.name": "shop"} if resource is None else resource
    resource_spans.resource.attributes.extend(key_values(given))
    for entry in spans:
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = entry.scope
        span = scope_spans.spans.add()
        span.trace_id = bytes.fromhex(trace_id)
        span.span_id = entry.id.to_bytes(8, "big")
        span.parent_span_id = entry.parent.to_bytes(8, "big") if entry.parent else b""
        span.name, span.flags = entry.name, entry.flags
        span.kind = entry.kind  # type: ignore[assignment] -- the enum's number
        span.start_time_unix_nano = entry.start * 1_000_000
        span.end_time_unix_nano = (entry.end or entry.start) * 1_000_000
        span.attributes.extend(key_values(entry.attributes))
        span.dropped_attributes_count = entry.dropped
        span.status.code = entry.status  # type: ignore[assignment] -- the enum's number
        span.status.message = entry.message
        for name, attributes in entry.events:
            event = span.events.add(name=name)
            event.attributes.extend(key_values(attributes))
    return made.SerializeToString()


def trace_of(
    *spans: SpanSpec | Mapping[str, Any], scope: str = "", keys: Keys | None = None
) -> Trace:
    """The trace of hand-made spans.

    Attributes alone stand for a span of this scope: the first is around the others, which follow each other.
    """
    made = (_placed(number, each, scope) for number, each in enumerate(spans, start=1))
    return read_trace([request(*made)], trace_id=TRACE_ID, closed="root_ended", keys=keys)


def _placed(number: int, given: SpanSpec | Mapping[str, Any], scope: str) -> SpanSpec:
    if not isinstance(given, SpanSpec):
        own = {key: value for key, value in given.items() if key != NAME}
        given = SpanSpec(name=given.get(NAME, ""), attributes=own)
    if given.id:
        return given
    start, end, parent = (2 * number - 3, 2 * number - 2, 1) if number > 1 else (0, 99, 0)
    return replace(
        given,
        id=number,
        parent=given.parent or parent,
        start=given.start or start,
        end=given.end or end,
        scope=given.scope or scope,
    )


def span_id(number: int) -> str:
    """The hex id of a made span."""
    return number.to_bytes(8, "big").hex()
