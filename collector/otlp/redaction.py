"""Redacts an export request: every text in it with markers in place of secrets (`redaction.patterns`). Pure.

    attribute keys and values (nested, and bytes that are UTF-8), names of spans, events and scopes, status messages,
    trace states, the resource, links, whatever else is a string in OTLP

Ids of traces and spans are never looked at. A part of the request in which no secret can be (`Marking.may_match`)
is not decoded but copied: that is decided per request, span and attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, cast

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.otlp.marking import Marking, Steps
from collector.otlp.repair import MAX_DEPTH, DecodedRequest, by_number
from collector.otlp.wire import MAX_FIELDS, RequestBudget, fields, header, spliced, varint
from evaluators.dialects.content.sessions import SESSION

if TYPE_CHECKING:  # a worker has no use for it: see `PlanSettings`
    from collector.config.tree import Config

Redact = Callable[[DecodedRequest, type[Message]], DecodedRequest]
"""From a request, which is such a message, to the same one without secrets."""
_LENGTH_DELIMITED = 2
PER_BYTES = 32
"""A request above 32 MB may have one field for every 32 bytes, in spans that are walked: real ones have fewer."""
_HINTED = frozenset({1, 4, 5})
"""Depths at which a part is searched before it is walked: the request, spans and resources, attributes and events."""
_INT = 0x18  # field int_value of AnyValue
_STRING = 0x0A  # field string_value of AnyValue
_KEY = 0x0A  # field key of KeyValue
_IDENTIFIERS = ("service.name", "metadata")
"""Beside the keys of sessions and tasks; `metadata` may hold the session's as JSON."""
_NOT_A_SPAN = "a span is not a valid message"


class RedactionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What of the configuration decides what is redacted."""

    patterns: dict[str, str]
    key: str | None
    identifiers: tuple[str, ...]
    """Attribute keys of the user's own, whose values go on to tell sessions and tasks apart."""

    @classmethod
    def of(cls, config: Config) -> Self:
        redaction, keys = config.redaction, config.attributes
        return cls(
            patterns=redaction.patterns,
            key=None if redaction.key is None else redaction.key.get_secret_value(),
            identifiers=(*keys.session, *keys.task),
        )


def redactor(settings: RedactionSettings) -> Redactor | None:
    """As they say; None: there are no patterns, so nothing is looked at."""
    if not settings.patterns:
        return None
    identifiers = (*settings.identifiers, *SESSION, *_IDENTIFIERS)
    return Redactor(Marking(settings.patterns, settings.key), identifiers=identifiers)


class Redactor:
    """Redacts requests; made once.

    `identifiers`: attribute keys whose values tell sessions, tasks and services apart, and must go on to do so.
    """

    def __init__(self, marking: Marking, *, identifiers: Iterable[str] = ()) -> None:
        self._marking = marking
        self._identifiers = frozenset(each.encode() for each in identifiers)

    def __call__(self, decoded: DecodedRequest, message: type[Message]) -> DecodedRequest:
        """The request, which is such a message, without secrets; a span that cannot be walked is left out, counted.

        Raises Undecodable: it is not a message, outside of its spans. Raises TooLarge: what must be looked at has more
        fields than a request may have.
        """
        request = decoded.request
        walk = _RedactionWalk(request, self._marking, self._identifiers)
        # The stubs name two classes for what is one at run time.
        whole = walk.message(0, len(request), cast(Descriptor, message.DESCRIPTOR), 1)
        return decoded._replace(
            request=request if whole is None else whole,
            invalid=decoded.invalid + walk.invalid,
            reasons=decoded.reasons or walk.reasons,
            marked=walk.steps.marked,
            whole=walk.steps.whole,
        )

    def piece(self, spans: bytes) -> bytes:
        """Spans out of the log, which whoever wrote them there may not have redacted.

        Raises Undecodable: they are not a message. Raises TooLarge: they have more fields than a request may have.
        """
        return self(DecodedRequest(spans), ExportTraceServiceRequest).request


class _RedactionWalk:
    def __init__(self, request: bytes, marking: Marking, identifiers: frozenset[bytes]) -> None:
        self._request = request
        self._marking = marking
        self._identifiers = identifiers
        self._budget = RequestBudget()
        self._budget.left = max(MAX_FIELDS, len(request) // PER_BYTES)
        self.steps = Steps(len(request))
        self.invalid = 0
        self.reasons: tuple[str, ...] = ()

    def message(
        self, start: int, end: int, kind: Descriptor, depth: int, *, identifies: bool = False
    ) -> bytes | None:
        """The bytes of the message in `request[start:end]`; None: they stay as they are."""
        if depth > MAX_DEPTH:
            raise Undecodable(f"the body is nested more than {MAX_DEPTH} deep")
        if depth in _HINTED and not self._marking.may_match(self._request, start, end):
            return None
        identifies = identifies or (kind is _KEY_VALUE and self._identifies(start, end))
        changes = self._changes(start, end, kind, depth, identifies=identifies)
        return spliced(self._request, start, end, changes)

    def _changes(
        self, start: int, end: int, kind: Descriptor, depth: int, *, identifies: bool
    ) -> Iterator[tuple[int, int, bytes]]:
        known = by_number(kind, FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
        for tag, begin, value, stop in fields(self._request, start, end, self._budget):
            if value == stop:
                continue
            if tag & 7 == _LENGTH_DELIMITED:
                changed = self._field(known.get(tag >> 3), tag, value, stop, depth, identifies)
            elif tag == _INT and kind is _ANY_VALUE:
                changed = self._number(value, identifies=identifies)
            else:
                continue
            if changed is not None:
                yield begin, stop, changed

    def _field(
        self,
        field: FieldDescriptor | None,
        tag: int,
        start: int,
        end: int,
        depth: int,
        identifies: bool,
    ) -> bytes | None:
        """The field with its header, empty if it is left out; None: it stays as it is."""
        if field is None:
            return b"" if self._marking.may_match(self._request, start, end) else None
        if field.message_type is _SPAN:
            value = self._span(start, end, depth + 1)
            if value == b"":
                return b""
        elif field.message_type is not None:
            value = self.message(start, end, field.message_type, depth + 1, identifies=identifies)
        else:
            value = self._text(field, start, end, identifies=identifies)
        return None if value is None else header(tag, len(value)) + value

    def _text(
        self, field: FieldDescriptor, start: int, end: int, *, identifies: bool
    ) -> bytes | None:
        text = self._request[start:end]
        if field.type == FieldDescriptor.TYPE_BYTES and (
            field.containing_type is not _ANY_VALUE or not _is_text(text)
        ):
            return None
        is_key = field.containing_type is _KEY_VALUE
        return self._marking.text(text, self.steps, identifies=identifies and not is_key)

    def _number(self, start: int, *, identifies: bool) -> bytes | None:
        value = varint(self._request, start)[0]
        marker = self._marking.number(value, identifies=identifies)
        return None if marker is None else header(_STRING, len(marker)) + marker

    def _identifies(self, start: int, end: int) -> bool:
        """Whether the attribute in `request[start:end]` is an identifier."""
        return any(
            tag == _KEY and self._request[value:stop] in self._identifiers
            for tag, _, value, stop in fields(self._request, start, end, self._budget)
        )

    def _span(self, start: int, end: int, depth: int) -> bytes | None:
        try:
            return self.message(start, end, _SPAN, depth)
        except Undecodable:
            self.invalid += 1
            self.reasons = (_NOT_A_SPAN,)
            return b""


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_ANY_VALUE, _KEY_VALUE, _SPAN = (cast(Any, each.DESCRIPTOR) for each in (AnyValue, KeyValue, Span))
