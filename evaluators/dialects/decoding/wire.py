"""The part of OTLP that a trace reader needs, as protobuf messages of our own.

Two differences from the official schema, both wire compatible: spans, scope and resource stay bytes, so that one broken
span cannot take its request with it; attributes are a `map`, whose wire form is exactly `repeated KeyValue`, so that a
value is looked up by its key in C and only the wanted ones ever become Python objects.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_KINDS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint32": _Field.TYPE_UINT32,
    "double": _Field.TYPE_DOUBLE,
    "fixed32": _Field.TYPE_FIXED32,
    "fixed64": _Field.TYPE_FIXED64,
}
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
    field.type = _KINDS.get(base, _Field.TYPE_MESSAGE)
    if base not in _KINDS:
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
        for field in fields:
            _add_field(message, *field)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("Request", "Resource", "Scope", "Span", "SoundRequest")
    }


_classes = _build()
Request: Any = _classes["Request"]
Resource: Any = _classes["Resource"]
Scope: Any = _classes["Scope"]
Span: Any = _classes["Span"]
SoundRequest: Any = _classes["SoundRequest"]
"""A request whose spans are parsed with it: cheaper, but one broken span breaks it."""
