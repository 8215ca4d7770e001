"""The ids of a span, read from its bytes without decoding its attributes."""

from __future__ import annotations

from struct import Struct

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.errors import Undecodable

_NO_TRACE = bytes(16)
_NO_SPAN = bytes(8)
_head = Struct("2s16s2s8s")
_TRACE = b"\x0a\x10"  # field 1, 16 bytes
_SPAN = b"\x12\x08"  # field 2, 8 bytes


def trace_at(data: bytes, start: int, end: int) -> bytes | None:
    """The trace id of the serialised `Span` in `data[start:end]`; None: look closer.

    Exporters write fields in number order, so both ids stand at fixed offsets behind constant bytes. Where they do
    not, or an id is not valid, it is for `read_ids` and `why_invalid` to say. No exporter writes an id twice; of one
    that does, this is the first, and a decoder's the last.
    """
    if end - start < _head.size:
        return None
    trace, trace_id, inner, span_id = _head.unpack_from(data, start)
    if trace != _TRACE or inner != _SPAN or trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return None
    return trace_id


def read_ids(span: bytes) -> tuple[bytes, bytes]:
    """The trace id and span id of any serialised `Span`, as sent: any length.

    Raises:
        Undecodable: not a span.
    """
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
