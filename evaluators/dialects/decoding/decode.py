"""OTLP bytes -> spans. Nothing here knows what an attribute means.

The part of OTLP that a trace reader needs is declared as protobuf messages of our own. Two differences from the
official schema, both wire compatible: spans, scope and resource stay bytes, so that one broken span cannot take its
request with it; attributes are a `map`, whose wire form is exactly `repeated KeyValue`, so that a value is looked up by
its key in C and only the wanted ones ever become Python objects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from evaluators.dialects.decoding.key_sets import Question, shape_of_map
from evaluators.dialects.decoding.values import LONGEST_MASK, MASK_BEGINS, is_hidden
from evaluators.model import JSON, Event, Span

DETAILS = "gen_ai.client.inference.operation.details"
CHOICE = "gen_ai.choice"
PROMPTS = frozenset({"gen_ai.content.prompt", "gen_ai.prompt"})
COMPLETIONS = frozenset({"gen_ai.content.completion", "gen_ai.completion"})
EVALUATION = "gen_ai.evaluation.result"
"""A score of an evaluator: it says something about the trace and is not part of it."""
EVALUATION_NAME = "gen_ai.evaluation.name"
_WHOLE = {DETAILS, CHOICE} | PROMPTS | COMPLETIONS


def carries_messages(name: str) -> bool:
    return name in _WHOLE or (name.startswith("gen_ai.") and name.endswith(".message"))


_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "spanwise.wire"

# Message -> its fields as (name, number, type); a leading "*" means repeated, "@" a map from string to AnyValue.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "AnyValue": (
        ("string_value", 1, "string"),
        ("bool_value", 2, "bool"),
        ("int_value", 3, "int64"),
        ("double_value", 4, "double"),
        ("array_value", 5, "ArrayValue"),
        ("kvlist_value", 6, "KeyValueList"),
        ("bytes_value", 7, "bytes"),
    ),
    "ArrayValue": (("values", 1, "*AnyValue"),),
    "KeyValueList": (("values", 1, "@"),),
    "Event": (
        ("time_unix_nano", 1, "fixed64"),
        ("name", 2, "string"),
        ("attributes", 3, "@"),
    ),
    "Status": (("message", 2, "string"), ("code", 3, "int32")),
    "Span": (
        ("trace_id", 1, "bytes"),
        ("span_id", 2, "bytes"),
        ("trace_state", 3, "string"),
        ("parent_span_id", 4, "bytes"),
        ("name", 5, "string"),
        ("kind", 6, "int32"),
        ("start_time_unix_nano", 7, "fixed64"),
        ("end_time_unix_nano", 8, "fixed64"),
        ("attributes", 9, "@"),
        ("dropped_attributes_count", 10, "uint32"),
        ("events", 11, "*Event"),
        ("status", 15, "Status"),
        ("flags", 16, "fixed32"),
    ),
    "Scope": (("name", 1, "string"),),
    "ScopeSpans": (("scope", 1, "bytes"), ("spans", 2, "*bytes")),
    "Resource": (("attributes", 1, "@"),),
    "ResourceSpans": (("resource", 1, "bytes"), ("scope_spans", 2, "*ScopeSpans")),
    "Request": (("resource_spans", 1, "*ResourceSpans"),),
    "SoundScopeSpans": (("scope", 1, "bytes"), ("spans", 2, "*Span")),
    "SoundResourceSpans": (("resource", 1, "bytes"), ("scope_spans", 2, "*SoundScopeSpans")),
    "SoundRequest": (("resource_spans", 1, "*SoundResourceSpans"),),
}


def _add_map(message: Any, field: Any) -> None:
    """Make `field` a map<string, AnyValue>: protobuf wants a nested entry type named after the field."""
    entry = message.nested_type.add(name=f"{field.name.title()}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=_Field.TYPE_MESSAGE,
        label=_Field.LABEL_OPTIONAL,
        type_name=f".{_PACKAGE}.AnyValue",
    )
    field.label = _Field.LABEL_REPEATED
    field.type = _Field.TYPE_MESSAGE
    field.type_name = f".{_PACKAGE}.{message.name}.{entry.name}"


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if kind == "@":
        _add_map(message, field)
        return
    if kind.startswith("*"):
        field.label = _Field.LABEL_REPEATED
    base = kind.removeprefix("*")
    field.type = getattr(_Field, f"TYPE_{base.upper()}", _Field.TYPE_MESSAGE)
    if field.type == _Field.TYPE_MESSAGE:
        field.type_name = f".{_PACKAGE}.{base}"
    if message.name == "AnyValue":
        field.oneof_index = 0


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="spanwise/wire.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name == "AnyValue":
            message.oneof_decl.add(name="value")
        for each in fields:
            _add_field(message, *each)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("Request", "Resource", "Scope", "Span", "SoundRequest")
    }


_WIRE = _build()
"""The messages by name. `SoundRequest`'s spans are parsed with it: cheaper, but one broken span breaks it."""


_T = TypeVar("_T")
_STATUS: dict[int, Literal["ok", "error"]] = {1: "ok", 2: "error"}
_ORIGINS = 256
"""Resources, and scopes, that are remembered."""
_SMALL = 4_096  # bytes of one that is
_DEPTH = 32  # arrays and key-value lists nested deeper than this are cut to None; protobuf itself refuses 100


class Attributes(Mapping[str, JSON]):
    """Attributes of a span, turned into Python values one by one, when asked for."""

    __slots__ = ("_raw", "names", "shape")

    def __init__(self, raw: Any, name: str = "") -> None:
        self._raw = raw
        self.shape = shape = shape_of_map(raw, name)
        self.names: frozenset[str] = shape.names

    def get(self, key: str, default: Any = None) -> JSON:
        """The value of `key`, else `default`; None for what was put in place of content that is hidden."""
        if key not in self.names:
            return default
        value = self._raw[key]
        text = value.string_value
        if text:
            if text[0] in MASK_BEGINS and len(text) <= LONGEST_MASK and is_hidden(text):
                return None
            return text
        return value.int_value or _python(value, 0)

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
    return attributes.names if isinstance(attributes, Attributes) else attributes.keys()


def all_names(spans: Iterable[Span]) -> frozenset[str]:
    return frozenset[str]().union(*{frozenset(names_of(span.attributes)) for span in spans})


def ask(attributes: Mapping[str, JSON], question: Question) -> Any:
    if isinstance(attributes, Attributes):
        return attributes.shape[question]
    return question(attributes.keys())


@dataclass(slots=True)
class DecodedSpans:
    spans: list[Span] = field(default_factory=list[Span])
    unreadable: int = 0


def decode(pieces: Sequence[bytes], trace_id: str) -> DecodedSpans:
    """The spans of `trace_id` in `pieces`; of a span id the first copy. Never raises on any bytes."""
    decoded = DecodedSpans()
    found: dict[bytes, Span] = {}
    wanted = (trace_id, _id_bytes(trace_id))
    for piece in pieces:
        _decode_piece(piece, wanted, found, decoded)
    decoded.spans = sorted(found.values(), key=_by_start)
    return decoded


_SEGMENT = "spanwise="
"""How the trace state begins of spans whose trace is made: they are of the trace into which they were put."""
_by_start = attrgetter("start_time_unix_nano", "span_id")


def _id_bytes(trace_id: str) -> bytes | None:
    """None for what is not an id in lower-case hex: no span has it."""
    try:
        raw = bytes.fromhex(trace_id)
    except ValueError:
        return None
    return raw if raw.hex() == trace_id else None


def _parse(message: Any, raw: bytes) -> Any | None:
    try:
        return message.FromString(raw)
    except DecodeError:
        return None


def _decode_piece(
    piece: bytes, wanted: tuple[str, bytes | None], found: dict[bytes, Span], decoded: DecodedSpans
) -> None:
    sound = _parse(_WIRE["SoundRequest"], piece)
    request = _parse(_WIRE["Request"], piece) if sound is None else sound
    if request is None:
        decoded.unreadable += 1
        return
    trace_id, id_bytes = wanted
    for resource_spans in request.resource_spans:
        resource = _resource(resource_spans.resource)
        for scope_spans in resource_spans.scope_spans:
            scope = _scope(scope_spans.scope)
            spans = scope_spans.spans
            if sound is None:
                spans = _each_by_itself(spans, decoded)
            for span in spans:
                span_id: bytes = span.span_id
                if not span_id or span_id in found:
                    continue
                if span.trace_id == id_bytes or span.trace_state.startswith(_SEGMENT):
                    found[span_id] = _span(span, trace_id, span_id.hex(), scope, resource)


def _small(read: Callable[[bytes], _T]) -> Callable[[bytes], _T]:
    remembered = lru_cache(maxsize=_ORIGINS)(read)
    return lambda raw: remembered(raw) if len(raw) <= _SMALL else read(raw)


@_small
def _resource(raw: bytes) -> Attributes:
    resource = _parse(_WIRE["Resource"], raw)
    return Attributes(resource.attributes if resource is not None else {})


@_small
def _scope(raw: bytes) -> str:
    scope = _parse(_WIRE["Scope"], raw)
    return scope.name if scope is not None else ""


def _each_by_itself(spans: Iterable[bytes], decoded: DecodedSpans) -> Iterator[Any]:
    """Those that can be read; the others are counted."""
    for raw in spans:
        span = _parse(_WIRE["Span"], raw)
        if span is None:
            decoded.unreadable += 1
        else:
            yield span


def _span(span: Any, trace_id: str, span_id: str, scope: str, resource: Attributes) -> Span:
    status = span.status if span.HasField("status") else None
    events = span.events
    name = span.name
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=span.parent_span_id.hex(),
        name=name,
        kind=span.kind,
        flags=span.flags,
        start_time_unix_nano=span.start_time_unix_nano,
        end_time_unix_nano=span.end_time_unix_nano,
        attributes=Attributes(span.attributes, name),
        events=tuple(_event(event) for event in events) if events else (),
        status=_STATUS.get(status.code, "unset") if status is not None else "unset",
        status_message=status.message if status is not None else "",
        scope=scope,
        resource=resource,
        dropped_attributes_count=span.dropped_attributes_count,
    )


def _event(event: Any) -> Event:
    name = event.name
    return Event(
        name=name,
        time_unix_nano=event.time_unix_nano,
        attributes=Attributes(event.attributes, name),
    )
