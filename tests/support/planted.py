"""Requests whose every text holds a secret, found by the descriptors of OTLP, not by a list of fields."""

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from tests.support.otlp import span, under


def planted(text: str) -> ExportTraceServiceRequest:
    """A request with every field of OTLP, each of whose strings, and attributes of bytes, is this text."""
    request = ExportTraceServiceRequest()
    under(request.resource_spans.add(), span(1, 1), service=text)
    _fill(request, text, 0)
    made = request.resource_spans[0].scope_spans[0].spans[0]
    made.trace_id, made.span_id = b"\1" * 16, b"\2" * 8
    values = (
        AnyValue(bytes_value=text.encode()),
        AnyValue(array_value={"values": [AnyValue(string_value=text)]}),  # pyright: ignore[reportArgumentType] - dicts do
        AnyValue(kvlist_value={"values": [{"key": text, "value": {"string_value": text}}]}),  # pyright: ignore[reportArgumentType] - dicts do
    )
    for number, value in enumerate(values):
        made.attributes.add(key=f"nested.{number}").value.CopyFrom(value)
    return request


def _fill(message: Any, text: str, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.message_type is not None:
            if depth < 12 and message.DESCRIPTOR is not AnyValue.DESCRIPTOR:
                each = (value[0] if len(value) else value.add()) if field.is_repeated else value
                _fill(each, text, depth + 1)
        elif field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                value.append(text)
            elif field.containing_oneof is None or field.name == "string_value":
                setattr(message, field.name, text)


def map_texts(message: Message, change: Callable[[str], str]) -> None:
    """Change every string of the message, and every attribute of bytes that is one."""
    for field, value in message.ListFields():
        children = list(value) if field.is_repeated else [value]
        if field.message_type is not None:
            for child in children:
                map_texts(child, change)
        elif field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                getattr(message, field.name)[:] = [change(each) for each in children]
            else:
                setattr(message, field.name, change(value))
        elif field.name == "bytes_value":
            _map_bytes(message, value, change)


def _map_bytes(message: Any, value: bytes, change: Callable[[str], str]) -> None:
    try:
        message.bytes_value = change(value.decode()).encode()
    except UnicodeDecodeError:
        return


def texts_of(message: Message) -> list[str]:
    """Every string of the message, and every attribute of bytes that is one."""
    found: list[str] = []

    def note(text: str) -> str:
        found.append(text)
        return text

    map_texts(message, note)
    return found
