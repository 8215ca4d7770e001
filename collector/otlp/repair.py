"""Repairs a request of traces that a protobuf parser refuses: its damaged strings, span by span. Pure.

A string that is not UTF-8 refuses the whole message for a parser, although SDKs cut texts in the middle of a character.
Such a string gets U+FFFD in place of each invalid sequence; a span that still is not a message is left out; everything
else is copied byte for byte. Only requests that failed come here: the others do not pay for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.errors import Undecodable
from collector.otlp.wire import Budget, fields, header, spliced

MAX_DEPTH = 100
"""As deep as protobuf parsers go."""
_LENGTH_DELIMITED = 2
_RESOURCE_SPANS = 0x0A  # field 1 of the request
_SPANS = 0x12  # field 2 of ResourceSpans and of ScopeSpans
_NOT_A_SPAN = "a span is not a valid message"


class Decoded(NamedTuple):
    """An export request in protobuf, and what had to be done to it."""

    request: bytes
    repaired: int = 0
    """Strings that were not Unicode and now are."""
    invalid: int = 0
    """Spans that were left out, because nothing reads them."""
    reasons: tuple[str, ...] = ()
    """Why the first of them was."""
    marked: int = 0
    """Texts in which secrets were marked."""
    whole: int = 0
    """Texts that became one marker, because looking at them would have cost too much."""


def repair(request: bytes) -> Decoded:
    """The request with every string valid and without the spans that are beyond repair.

    Raises:
        Undecodable: the fault is outside of the spans and not in a string.
        TooLarge: the damaged spans have more fields than a request may have.
    """
    work = _Repair(request)
    whole = work.message(0, len(request), ExportTraceServiceRequest.DESCRIPTOR, 1)
    return Decoded(request if whole is None else whole, work.repaired, work.invalid, work.reasons)


class _Repair:
    """One request being repaired."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._budget = Budget()
        self.repaired = 0
        self.invalid = 0
        self.reasons: tuple[str, ...] = ()

    def message(self, start: int, end: int, kind: Descriptor, depth: int) -> bytes | None:
        """The bytes of the message in `request[start:end]`; None: they stay as they are."""
        if depth > MAX_DEPTH:
            raise Undecodable(f"the body is nested more than {MAX_DEPTH} deep")
        return spliced(self._request, start, end, self._changes(start, end, kind, depth))

    def _changes(
        self, start: int, end: int, kind: Descriptor, depth: int
    ) -> Iterator[tuple[int, int, bytes]]:
        known = _by_number(kind)
        for tag, begin, value, stop in fields(self._request, start, end, self._budget):
            field = known.get(tag >> 3) if tag & 7 == _LENGTH_DELIMITED else None
            changed = field and self._field(field, tag, value, stop, depth)
            if changed is not None:
                yield begin, stop, changed

    def _field(
        self, field: FieldDescriptor, tag: int, start: int, end: int, depth: int
    ) -> bytes | None:
        """The field with its header, empty if it is left out; None: it stays as it is."""
        if field.message_type is None:
            value = self._string(self._request[start:end])
        elif field.message_type is Span.DESCRIPTOR:
            value = self._span(start, end, depth + 1)
            if value == b"":
                return b""
        else:
            value = self.message(start, end, field.message_type, depth + 1)
        return None if value is None else header(tag, len(value)) + value

    def _string(self, value: bytes) -> bytes | None:
        try:
            value.decode()
        except UnicodeDecodeError:
            self.repaired += 1
            return value.decode(errors="replace").encode()
        return None

    def _span(self, start: int, end: int, depth: int) -> bytes | None:
        if _is_span(self._request[start:end]):
            return None
        before = self.repaired
        try:
            span = self.message(start, end, Span.DESCRIPTOR, depth)
        except Undecodable:
            span = None
        if span is None or not _is_span(span):
            self.repaired = before
            self.invalid += 1
            self.reasons = (_NOT_A_SPAN,)
            return b""
        return span


def _is_span(value: bytes) -> bool:
    """Whether a parser of the whole request reads this span: it counts the depth from the request on."""
    scope = header(_SPANS, len(value))
    resource = header(_SPANS, len(scope) + len(value))
    request = header(_RESOURCE_SPANS, len(resource) + len(scope) + len(value))
    try:
        ExportTraceServiceRequest.FromString(b"".join((request, resource, scope, value)))
    except DecodeError:
        return False
    return True


@cache
def _by_number(kind: Descriptor) -> Mapping[int, FieldDescriptor]:
    """The strings and messages of this kind; OTLP numbers all of them below 16, so that a tag is one byte."""
    return {
        field.number: field
        for field in kind.fields
        if field.number < 16
        and (field.message_type is not None or field.type == FieldDescriptor.TYPE_STRING)
    }
