"""A trace's raw pieces as OTLP/JSON-like spans: OTLP's JSON names, ids in hex, attributes as plain objects."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector.otlp.names import is_name, is_shown, name_shown, span_name_shown

_LABELS = ("service.name", "gen_ai.agent.name")
"""Attributes whose texts are labels everywhere else, too."""
_NAMING_KEYS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.system",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.agent.version",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
    "openinference.span.kind",
    "traceloop.span.kind",
    "service.version",
    "telemetry.sdk.language",
)
"""Attributes whose texts name things; every other text may be content."""

_STATUS = {
    Status.STATUS_CODE_UNSET: "unset",
    Status.STATUS_CODE_OK: "ok",
    Status.STATUS_CODE_ERROR: "error",
}


def decode(pieces: Sequence[bytes], *, content: bool) -> list[dict[str, Any]]:
    """The spans in order of start; a span that came twice is once, as it came last.

    Without `content`, only numbers, truth values and names are left, and names only that look like one. A piece that
    cannot be decoded is left out.
    """
    spans: dict[str, dict[str, Any]] = {}
    for piece in pieces:
        for span in _spans(piece, content=content):
            spans[span["spanId"]] = span
    return sorted(spans.values(), key=lambda span: (int(span["startTimeUnixNano"]), span["spanId"]))


def _spans(piece: bytes, *, content: bool) -> Iterator[dict[str, Any]]:
    try:
        request = ExportTraceServiceRequest.FromString(piece)
    except DecodeError:
        return
    name = _as_it_is if content else name_shown
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes, content=content)
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                yield {
                    **_span(span, content=content),
                    "scope": name(scope_spans.scope.name),
                    "scopeVersion": name(scope_spans.scope.version),
                    "resource": resource,
                }


def _span(span: Span, *, content: bool) -> dict[str, Any]:
    return {
        "traceId": span.trace_id.hex(),
        "spanId": span.span_id.hex(),
        "parentSpanId": span.parent_span_id.hex(),
        "name": span.name if content else span_name_shown(span.name),
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start_time_unix_nano),
        "endTimeUnixNano": str(span.end_time_unix_nano),
        "status": {
            "code": _STATUS.get(span.status.code, "unset"),
            "message": span.status.message if content else "",
        },
        "attributes": _attributes(span.attributes, content=content),
        "events": [
            {
                "name": event.name if content else name_shown(event.name),
                "timeUnixNano": str(event.time_unix_nano),
                "attributes": _attributes(event.attributes, content=content),
            }
            for event in span.events
        ],
        "droppedAttributesCount": span.dropped_attributes_count,
    }


def _attributes(given: Iterable[KeyValue], *, content: bool) -> dict[str, Any]:
    plain = {each.key: _value(each.value) for each in given}
    if content:
        return plain
    names = {key: name_shown(str(plain[key])) for key in _NAMING_KEYS if key in plain}
    labels = {key: plain[key] for key in _LABELS if key in plain}
    numbers = {key: value for key, value in plain.items() if is_name(key) and is_shown(value)}
    shown = numbers | names | labels
    return {key: shown[key] for key in plain if key in shown}


def _as_it_is(text: str) -> str:
    return text


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return {each.key: _value(each.value) for each in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return getattr(value, kind)
