"""What was sent, of what is in topic `spans`: log records and moved spans carry it in a field of their own. Pure.

    a made span            -> the log record that it was made of
    a span of a made trace -> the span with the ids that it was sent with
    a record of the log    -> log records that nothing here reads, for the backend under `forward` alone

The field's number is not one of OTLP's, so whoever reads spans passes over it.
"""

from typing import NamedTuple

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.otlp.made_spans import BODY_KEY
from collector.otlp.wire import header

_FIELD = 47_107
"""Far above the numbers of OTLP's fields, which are below 20, and below those that protobuf keeps for itself."""
_TAG = bytes((0x9A, 0x80, 0x17))  # `_FIELD << 3 | 2` as a varint
_MARK = b"spanwise.sent:"  # its value begins with this: a search for it tells the few records that hold the field
_RECORD, _SPAN, _UNREAD = b"r", b"s", b"u"


class SentRequests(NamedTuple):
    """The requests that a record of `spans` stands for; empty where it holds none of the kind."""

    spans: bytes
    log_records: bytes


def keep_record(span: Span, record: LogRecord) -> None:
    """Keep in a made span what it does not say of its record."""
    rest = LogRecord()
    rest.CopyFrom(record)
    rest.ClearField("attributes")
    rest.ClearField("body")
    span.MergeFromString(_field(_RECORD + rest.SerializeToString()))


def keep_span(span: Span) -> None:
    sent = Span(trace_id=span.trace_id, trace_state=span.trace_state)
    span.MergeFromString(_field(_SPAN + sent.SerializeToString()))


def unread_record(request: bytes) -> bytes:
    """A record of `spans` without a span, which holds this request of log records."""
    return _field(_UNREAD + request)


def as_sent(value: bytes) -> SentRequests:
    """The requests that the backend under `forward` gets for a record of `spans`."""
    if _MARK not in value:
        return SentRequests(value, b"")
    try:
        return _restored(ExportTraceServiceRequest.FromString(value))
    except (DecodeError, IndexError):  # a sender's own field of that number
        return SentRequests(value, b"")


def unread_in(value: bytes) -> bytes:
    """The log records of a record of `spans` that has nothing else; empty: it is not one."""
    return as_sent(value).log_records if value.startswith(_TAG) else b""


def _restored(request: ExportTraceServiceRequest) -> SentRequests:
    unread = _kept(request)
    logs = ExportLogsServiceRequest()
    if unread[:1] == _UNREAD:
        logs.MergeFromString(unread[1:])
    spans = ExportTraceServiceRequest()
    for group in request.resource_spans:
        _restore(group, spans, logs)
    return SentRequests(spans.SerializeToString(), logs.SerializeToString())


def _restore(
    group: ResourceSpans, spans: ExportTraceServiceRequest, logs: ExportLogsServiceRequest
) -> None:
    sent = ResourceSpans(resource=group.resource, schema_url=group.schema_url)
    records = None
    for scope in group.scope_spans:
        kept = ScopeSpans(scope=scope.scope, schema_url=scope.schema_url)
        made: list[LogRecord] = []
        for span in scope.spans:
            form = _kept(span)
            if form[:1] == _RECORD:
                made.append(_record(span, form[1:]))
                continue
            if form[:1] == _SPAN:
                span.DiscardUnknownFields()
                was = Span.FromString(form[1:])
                span.trace_id, span.trace_state = was.trace_id, was.trace_state
            kept.spans.append(span)
        if kept.spans:
            sent.scope_spans.append(kept)
        if made:
            if records is None:
                records = logs.resource_logs.add(
                    resource=group.resource, schema_url=group.schema_url
                )
            records.scope_logs.add(scope=scope.scope, schema_url=scope.schema_url, log_records=made)
    if sent.scope_spans:
        spans.resource_spans.append(sent)


def _record(span: Span, rest: bytes) -> LogRecord:
    """The record that `made_span` made the span of: its own attributes are at the span's end."""
    record = LogRecord.FromString(rest)
    own = 1
    if span.attributes[-1].key == BODY_KEY:
        record.body.CopyFrom(span.attributes[-1].value)
        own = 2
    record.attributes.extend(span.attributes[:-own])
    return record


def _field(form: bytes) -> bytes:
    value = _MARK + form
    return _TAG[:-1] + header(_TAG[-1], len(value)) + value


def _kept(message: Message) -> bytes:
    """The form of the field; empty where the message has none."""
    for field in UnknownFieldSet(message):
        data = field.data
        if field.field_number == _FIELD and isinstance(data, bytes) and data.startswith(_MARK):
            return data[len(_MARK) :]
    return b""
