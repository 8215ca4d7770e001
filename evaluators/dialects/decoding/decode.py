"""OTLP bytes -> spans. Nothing here knows what an attribute means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

from evaluators.dialects.decoding import wire
from evaluators.dialects.decoding.key_sets import Question, shape_of
from evaluators.model import JSON, Event, Span, Status

_STATUS: dict[int, Status] = {1: "ok", 2: "error"}
_DEPTH = 32
"""Arrays and key-value lists nested deeper than this are cut to None; protobuf itself refuses 100."""


class Attributes(Mapping[str, JSON]):
    """Attributes of a span, turned into Python values one by one, when asked for."""

    __slots__ = ("_raw", "names", "shape")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.shape = shape_of(frozenset(raw))
        self.names: frozenset[str] = self.shape.names

    def get(self, key: str, default: Any = None) -> JSON:
        """The value of `key`, else `default`."""
        if key not in self.names:
            return default
        value = self._raw[key]
        return value.string_value or value.int_value or _python(value, 0)

    def __getitem__(self, key: str) -> JSON:
        if key not in self.names:
            raise KeyError(key)
        return self.get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.names))

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, key: object) -> bool:
        return key in self.names


def _python(value: Any, depth: int) -> JSON:
    kind = value.WhichOneof("value")
    if kind is None or depth > _DEPTH:
        return None
    inner = getattr(value, kind)
    if kind == "array_value":
        return [_python(item, depth + 1) for item in inner.values]
    if kind == "kvlist_value":
        return {key: _python(inner.values[key], depth + 1) for key in sorted(inner.values)}
    if kind == "bytes_value":
        return inner.hex()
    return inner


def names_of(attributes: Mapping[str, JSON]) -> AbstractSet[str]:
    """All keys, as a set that answers in C."""
    return attributes.names if isinstance(attributes, Attributes) else attributes.keys()


def all_names(spans: Iterable[Span]) -> frozenset[str]:
    """Every key of every span."""
    sets = {id(names := names_of(span.attributes)): names for span in spans}
    return frozenset[str]().union(*sets.values())


def ask(attributes: Mapping[str, JSON], question: Question) -> Any:
    """The answer for these attributes' keys: remembered for a span's, worked out for any other mapping's."""
    if isinstance(attributes, Attributes):
        return attributes.shape[question]
    return question.answer(attributes.keys())


@dataclass(slots=True)
class Decoded:
    """The spans of one trace, in order of start, and how many could not be read."""

    spans: list[Span] = field(default_factory=list[Span])
    unreadable: int = 0


def decode(pieces: Sequence[bytes], trace_id: str) -> Decoded:
    """The spans of `trace_id` in `pieces`; of a span id the first copy. Never raises on any bytes."""
    decoded = Decoded()
    found: dict[str, Span] = {}
    for piece in pieces:
        _decode_piece(piece, trace_id, found, decoded)
    decoded.spans = sorted(found.values(), key=_by_start)
    return decoded


def _by_start(span: Span) -> tuple[int, str]:
    return span.start_time_unix_nano, span.span_id


def _parse(message: Any, raw: bytes) -> Any | None:
    try:
        return message.FromString(raw)
    except DecodeError:
        return None


def _decode_piece(piece: bytes, trace_id: str, found: dict[str, Span], decoded: Decoded) -> None:
    sound = _parse(wire.SoundRequest, piece)
    request = _parse(wire.Request, piece) if sound is None else sound
    if request is None:
        decoded.unreadable += 1
        return
    for resource_spans in request.resource_spans:
        resource = _parse(wire.Resource, resource_spans.resource)
        attributes = Attributes(resource.attributes if resource is not None else {})
        for scope_spans in resource_spans.scope_spans:
            scope = _parse(wire.Scope, scope_spans.scope)
            origin = (scope.name if scope is not None else "", attributes)
            spans = scope_spans.spans
            if sound is None:
                spans = _each_by_itself(spans, decoded)
            for span in spans:
                span_id = span.span_id.hex()
                if span_id and span_id not in found and span.trace_id.hex() == trace_id:
                    found[span_id] = _span(span, trace_id, span_id, origin)


def _each_by_itself(spans: Iterable[bytes], decoded: Decoded) -> Iterator[Any]:
    """Those that can be read; the others are counted."""
    for raw in spans:
        span = _parse(wire.Span, raw)
        if span is None:
            decoded.unreadable += 1
        else:
            yield span


def _span(span: Any, trace_id: str, span_id: str, origin: tuple[str, Attributes]) -> Span:
    status = span.status if span.HasField("status") else None
    events = span.events
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        flags=span.flags,
        start_time_unix_nano=span.start_time_unix_nano,
        end_time_unix_nano=span.end_time_unix_nano,
        attributes=Attributes(span.attributes),
        events=tuple(_event(event) for event in events) if events else (),
        status=_STATUS.get(status.code, "unset") if status is not None else "unset",
        status_message=status.message if status is not None else "",
        scope=origin[0],
        resource=origin[1],
        dropped_attributes_count=span.dropped_attributes_count,
    )


def _event(event: Any) -> Event:
    return Event(
        name=event.name,
        time_unix_nano=event.time_unix_nano,
        attributes=Attributes(event.attributes),
    )
