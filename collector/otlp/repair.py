"""Repairs an export request that a protobuf parser refuses: its damaged strings, span by span, record by record. Pure.

A string that is not UTF-8 refuses the whole message for a parser, although SDKs cut texts in the middle of a character.
Such a string gets U+FFFD in place of each invalid sequence; an item that still is not a message is left out; everything
else is copied byte for byte. Only requests that failed come here: the others do not pay for it.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.otlp.wire import RequestBudget, fields, header, spliced

MAX_DEPTH = 100  # as deep as protobuf parsers go
_LENGTH_DELIMITED = 2  # protobuf's wire type of bytes, texts and messages
_RESOURCE = 0x0A  # field 1 of a request: ResourceSpans, ResourceLogs
_ITEMS = 0x12  # field 2 of these, and of ScopeSpans and ScopeLogs


class _Kind(NamedTuple):
    request: type[Message]
    item: Descriptor
    name: str


_TRACES = _Kind(ExportTraceServiceRequest, Span.DESCRIPTOR, "span")
_LOGS = _Kind(ExportLogsServiceRequest, LogRecord.DESCRIPTOR, "log record")


class DecodedRequest(NamedTuple):
    """An export request in protobuf, and what had to be done to it."""

    request: bytes
    repaired: int = 0  # strings that were not Unicode and now are
    invalid: int = 0  # spans, or records, that were left out, because nothing reads them
    reasons: tuple[str, ...] = ()  # why the first of them was
    marked: int = 0  # texts in which secrets were marked
    whole: int = 0  # texts that became one marker, because looking at them would have cost too much


def repair(request: bytes) -> DecodedRequest:
    """The request of traces with every string valid and without the spans that are beyond repair.

    Raises Undecodable: the fault is outside of the spans and not in a string. Raises TooLarge: the damaged spans have
    more fields than a request may have.
    """
    return _repaired(request, _TRACES)


def repair_logs(request: bytes) -> DecodedRequest:
    """The same of a request of log records; see `repair`."""
    return _repaired(request, _LOGS)


def _repaired(request: bytes, kind: _Kind) -> DecodedRequest:
    work = _Repair(request, kind)
    whole = work.message(0, len(request), cast(Descriptor, kind.request.DESCRIPTOR), 1)
    return DecodedRequest(
        request if whole is None else whole, work.repaired, work.invalid, work.reasons
    )


class _Repair:
    def __init__(self, request: bytes, kind: _Kind) -> None:
        self._request = request
        self._kind = kind
        self._budget = RequestBudget()
        self.repaired = 0
        self.invalid = 0
        self.reasons: tuple[str, ...] = ()

    def message(self, start: int, end: int, kind: Descriptor, depth: int) -> bytes | None:
        if depth > MAX_DEPTH:
            raise Undecodable(f"the body is nested more than {MAX_DEPTH} deep")
        return spliced(self._request, start, end, self._changes(start, end, kind, depth))

    def _changes(
        self, start: int, end: int, kind: Descriptor, depth: int
    ) -> Iterator[tuple[int, int, bytes]]:
        known = by_number(kind, FieldDescriptor.TYPE_STRING)
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
        elif field.message_type is self._kind.item:
            value = self._item(start, end, depth + 1)
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

    def _item(self, start: int, end: int, depth: int) -> bytes | None:
        if _is_read(self._request[start:end], self._kind):
            return None
        before = self.repaired
        try:
            item = self.message(start, end, self._kind.item, depth)
        except Undecodable:
            item = None
        if item is None or not _is_read(item, self._kind):
            self.repaired = before
            self.invalid += 1
            self.reasons = (f"a {self._kind.name} is not a valid message",)
            return b""
        return item


def _is_read(value: bytes, kind: _Kind) -> bool:
    """Whether a parser of the whole request reads this item: it counts the depth from the request on."""
    scope = header(_ITEMS, len(value))
    resource = header(_ITEMS, len(scope) + len(value))
    request = header(_RESOURCE, len(resource) + len(scope) + len(value))
    try:
        kind.request.FromString(b"".join((request, resource, scope, value)))
    except DecodeError:
        return False
    return True


@cache
def by_number(kind: Descriptor, *types: int) -> Mapping[int, FieldDescriptor]:
    """The messages of this kind and its fields of these types; OTLP numbers all of them below 16: tags are one byte."""
    return {
        field.number: field
        for field in kind.fields
        if field.number < 16 and (field.message_type is not None or field.type in types)
    }
