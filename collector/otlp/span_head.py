"""The few bytes of OTLP spans that the hot path needs, read without decoding attributes.

A request is parsed with a cut-down schema whose spans, resources and scopes are raw bytes; what it does not name
(schema URLs) stays as unknown fields. All of it is written back untouched, in number order. Of a span, the ids sit at
fixed offsets when the exporter writes its fields in number order, as all do; where the constant bytes differ, that one
span is parsed with a second small schema. The two agree on every span whose fields are in number order. `SpanHeads` is
a request of such spans, for who reads or changes ids and trace states of all.
"""

from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from struct import Struct
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable

REMOTE_PARENT = 0x300
"""Span flags: it is known whether the parent is remote (0x100), and it is (0x200)."""

_T = TypeVar("_T")
_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)
_IDS = Struct("2s16s2s8s")
_HEAD = Struct("2s16s2s8s2s8s")
_TRACE_TAG, _SPAN_TAG, _PARENT_TAG = b"\x0a\x10", b"\x12\x08", b"\x22\x08"
"""Fields 1, 2 and 4 with the lengths that ids have."""


class SpanHead(NamedTuple):
    """What tells where a span belongs. `parent_span_id` is empty for a span without parent."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    remote_parent: bool

    @property
    def is_valid(self) -> bool:
        """Whether both ids have their length and are not all zero."""
        return why_invalid(self.trace_id, self.span_id) is None


_head: Callable[[tuple[bytes, bytes, bytes, bool]], SpanHead] = partial(
    cast(Any, tuple).__new__, SpanHead
)
"""The class without what a call of it costs."""


class ScopeSpans(Protocol):
    spans: MutableSequence[bytes]


class ResourceSpans(Protocol):
    """`opentelemetry.proto.trace.v1.ResourceSpans`, its resource (sent once, or in parts) and spans undecoded."""

    resource: Sequence[bytes]
    scope_spans: MutableSequence[ScopeSpans]


class ExportRequest(Protocol):
    resource_spans: MutableSequence[ResourceSpans]

    def SerializeToString(self, *, deterministic: bool) -> bytes:  # noqa: N802 - protobuf's name
        """The request's bytes, unknown fields included."""
        ...


class _Span(Protocol):
    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    start_time_unix_nano: int
    flags: int


def parse(value: bytes) -> ExportRequest:
    """The request with its spans as raw bytes. Raises Undecodable: not an ExportTraceServiceRequest."""
    try:
        return _parse_request(value)
    except DecodeError as error:
        raise Undecodable("not an ExportTraceServiceRequest") from error


def head(span: bytes) -> SpanHead:
    """Where one raw span belongs; ids as they came, valid or not. Raises Undecodable: not a span."""
    return head_at(span, 0, len(span)) or _parsed_head(span)


def start_time_unix_nano(span: bytes) -> int:
    """When one raw span began. Raises Undecodable: not a span."""
    return _parsed(span).start_time_unix_nano


def cut(value: bytes, keep: Callable[[bytes], bool]) -> bytes:
    """The request with only those raw spans for which `keep` holds, and no empty scope or resource left.

    Raises Undecodable: not an ExportTraceServiceRequest.
    """
    request = parse(value)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            kept = [span for span in scope.spans if keep(span)]
            if len(kept) != len(scope.spans):
                del scope.spans[:]
                scope.spans.extend(kept)
        _drop_empty(resource.scope_spans, lambda scope: not scope.spans)
    _drop_empty(request.resource_spans, lambda resource: not resource.scope_spans)
    return request.SerializeToString(deterministic=True)


def _drop_empty(items: MutableSequence[_T], is_empty: Callable[[_T], bool]) -> None:
    for index in reversed(range(len(items))):
        if is_empty(items[index]):
            del items[index]


def _parsed_head(span: bytes) -> SpanHead:
    parsed = _parsed(span)
    remote = parsed.flags & REMOTE_PARENT == REMOTE_PARENT
    return SpanHead(parsed.trace_id, parsed.span_id, _real(parsed.parent_span_id), remote)


def _parsed(span: bytes) -> _Span:
    try:
        return _parse_span(span)
    except DecodeError as error:
        raise Undecodable("not a span") from error


def _real(parent_span_id: bytes) -> bytes:
    return parent_span_id if parent_span_id.strip(b"\0") else b""


def trace_at(data: bytes, start: int, end: int) -> bytes | None:
    """The trace id of the serialised `Span` in `data[start:end]`; None: look closer.

    Exporters write fields in number order, so both ids are at fixed offsets behind constant bytes. Where they do
    not, or an id is not valid, it is for `read_ids` and `why_invalid` to say. No exporter writes an id twice; of one
    that does, this is the first, and a decoder's the last.
    """
    if end - start < _IDS.size:
        return None
    trace, trace_id, inner, span_id = _IDS.unpack_from(data, start)
    if trace != _TRACE_TAG or inner != _SPAN_TAG or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return trace_id


def head_at(data: bytes, start: int, end: int) -> SpanHead | None:
    """The head of the `Span` in `data[start:end]`, if it is valid and is at fixed offsets; None: look closer.

    The same as `head` says of these bytes.
    """
    if end - start < _HEAD.size:
        return None
    of_trace, trace_id, of_span, span_id, following, parent = _HEAD.unpack_from(data, start)
    if (
        of_trace != _TRACE_TAG
        or of_span != _SPAN_TAG
        or trace_id == _NO_TRACE
        or span_id == _NO_SPAN
    ):
        return None
    if following != _PARENT_TAG:
        return None if following < b"\x28" else _head((trace_id, span_id, b"", False))
    if data[end - 6] == 0x85 and data[end - 5] == 1 and data[end - 3] & 3 == 3:  # a remote parent
        return None
    return _head((trace_id, span_id, b"" if parent == _NO_SPAN else parent, False))


def read_ids(span: bytes) -> tuple[bytes, bytes]:
    """The trace id and span id of any serialised `Span`, as sent: any length. Raises Undecodable: not a span."""
    try:
        parsed = Span.FromString(span)
    except DecodeError as error:
        raise Undecodable("a span is not a valid message") from error
    return parsed.trace_id, parsed.span_id


def why_invalid(trace_id: bytes, span_id: bytes) -> str | None:
    """Why these ids can never be accepted (trace.proto: 16 and 8 bytes, not all zero); None: they are fine."""
    if len(trace_id) != 16:
        return f"trace_id has {len(trace_id)} bytes, not 16"
    if len(span_id) != 8:
        return f"span_id has {len(span_id)} bytes, not 8"
    if trace_id == _NO_TRACE:
        return "trace_id is all zeros"
    if span_id == _NO_SPAN:
        return "span_id is all zeros"
    return None


_Field = descriptor_pb2.FieldDescriptorProto


def _message(
    name: str, *fields: tuple[str, int, _Field.Type.ValueType, str | None]
) -> descriptor_pb2.DescriptorProto:
    message = descriptor_pb2.DescriptorProto(name=name)
    for field_name, number, kind, of in fields:
        field = message.field.add(name=field_name, number=number, type=kind)
        # A resource sent in several parts is legal, too: `repeated` keeps them all.
        field.label = _Field.LABEL_OPTIONAL if name == "Span" else _Field.LABEL_REPEATED
        if of is not None:
            field.type_name = f".spanwise.cut.{of}"
    return message


def _schema() -> descriptor_pb2.FileDescriptorProto:
    nested, raw = _Field.TYPE_MESSAGE, _Field.TYPE_BYTES
    messages = (
        _message("Request", ("resource_spans", 1, nested, "ResourceSpans")),
        _message(
            "ResourceSpans", ("resource", 1, raw, None), ("scope_spans", 2, nested, "ScopeSpans")
        ),
        _message("ScopeSpans", ("scope", 1, raw, None), ("spans", 2, raw, None)),
        _message(
            "Span",
            ("trace_id", 1, raw, None),
            ("span_id", 2, raw, None),
            ("trace_state", 3, _Field.TYPE_STRING, None),
            ("parent_span_id", 4, raw, None),
            ("start_time_unix_nano", 7, _Field.TYPE_FIXED64, None),
            ("end_time_unix_nano", 8, _Field.TYPE_FIXED64, None),
            ("flags", 16, _Field.TYPE_FIXED32, None),
        ),
        _message("SpanHeads", ("resource_spans", 1, nested, "ResourceHeads")),
        _message("ResourceHeads", ("scope_spans", 2, nested, "ScopeHeads")),
        _message("ScopeHeads", ("spans", 2, nested, "Span")),
    )
    return descriptor_pb2.FileDescriptorProto(
        name="spanwise_cut.proto", package="spanwise.cut", syntax="proto3", message_type=messages
    )


_pool = descriptor_pool.DescriptorPool()  # our own: the default one knows the full schema
_pool.Add(_schema())


def _class(name: str) -> type[Message]:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"spanwise.cut.{name}"))


# The classes are made at import, so their attributes are known only to the protocols above.
_parse_request = cast("Callable[[bytes], ExportRequest]", _class("Request").FromString)
_parse_span = cast("Callable[[bytes], _Span]", _class("Span").FromString)
SpanHeads = _class("SpanHeads")
