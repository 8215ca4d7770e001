"""OTLP/JSON to the bytes of an export request.

Not protobuf's JSON: ids are hex, enums are numbers only, keys are lowerCamelCase only, unknown keys are ignored
(OTLP specification, "JSON Protobuf Encoding"). `google.protobuf.json_format` differs in all four, silently.

An id that is not hex becomes an id of a wrong length: the span is rejected by the split, its siblings are not.
"""

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NoReturn, cast

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import EncodeError, Message
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import TooLarge, Undecodable
from collector.otlp.repair import DecodedRequest
from collector.otlp.wire import MAX_FIELDS

MAX_DEPTH = 100  # as deep as protobuf parsers go
_IDS = frozenset({"trace_id", "span_id", "parent_span_id"})
_NOT_HEX = {"parent_span_id": b"?"}  # keep the span, its parent unknown: empty would make it a root
_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""A string, also one that does not end: every byte is looked at once."""
_ITEMS = (Span.DESCRIPTOR, LogRecord.DESCRIPTOR)
_Object = dict[str, Any]


def to_protobuf(body: bytes, message: type[Message]) -> DecodedRequest:
    """The same request in protobuf; `message` is the export request of its signal.

    A string that is not Unicode (half of a surrogate pair, bytes that are not UTF-8) gets U+FFFD there; a span, or log
    record, that is not OTLP is left out. Raises Undecodable: not OTLP/JSON; the message names the field. Raises
    TooLarge: it has more elements than one request may have.
    """
    bound_elements(body)
    request = message()
    filler = _Filler()
    try:
        filler.fill(request, _object(_parse(body), "body"), "", 1)
        whole = request.SerializeToString()
    except (RecursionError, EncodeError) as error:
        raise Undecodable("the body is nested too deeply") from error
    return DecodedRequest(whole, filler.repaired, filler.invalid, filler.reasons)


def bound_elements(body: bytes) -> None:
    """Refuse more elements than a request may have: parsed, `{}` is 64 bytes. Raises TooLarge: there are more."""
    if _elements(body) <= MAX_FIELDS:
        return
    bare, strings = _STRING.subn(b"", body, count=MAX_FIELDS + 1)  # punctuation in texts is free
    if strings > MAX_FIELDS or _elements(bare) > MAX_FIELDS:
        raise TooLarge(f"the request has more than {MAX_FIELDS} elements")


def _elements(body: bytes) -> int:
    return body.count(b"{") + body.count(b"[") + body.count(b",")


def _parse(body: bytes) -> Any:
    try:
        return json.loads(
            body.decode("utf-8", "surrogateescape"),
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
        )
    except ValueError as error:
        raise Undecodable(f"the body is not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> _Object:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Undecodable("the body holds an object with a duplicate key")
    return found


def _no_constant(name: str) -> NoReturn:
    raise Undecodable(f'bare {name} is not JSON; write "{name}"')


class _Filler:
    """Fills one request; a span that is not OTLP is left out, a string that is not Unicode repaired."""

    def __init__(self) -> None:
        self.repaired = 0
        self.invalid = 0
        self.reasons: tuple[str, ...] = ()

    def fill(self, message: Message, values: _Object, path: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Undecodable(f"the body is nested more than {MAX_DEPTH} deep")
        fields = _fields(type(message))
        chosen: str | None = None
        for name, value in values.items():
            field = fields.get(name)
            if field is None or value is None:
                continue
            where = f"{path}.{name}" if path else name
            if field.containing_oneof is not None:
                if chosen is not None:
                    raise Undecodable(f"{where}: {chosen} is set too, only one can be")
                chosen = name
            self._set(message, field, value, where, depth)

    def _set(
        self, message: Message, field: FieldDescriptor, value: Any, path: str, depth: int
    ) -> None:
        if field.is_repeated:
            self._extend(getattr(message, field.name), field, _list(value, path), path, depth)
        elif field.message_type is not None:
            child: Message = getattr(message, field.name)
            child.SetInParent()
            self.fill(child, _object(value, path), path, depth + 1)
        else:
            setattr(message, field.name, self._scalar(field, value, path))

    def _extend(
        self, target: Any, field: FieldDescriptor, values: list[Any], path: str, depth: int
    ) -> None:
        for number, value in enumerate(values):
            where = f"{path}[{number}]"
            if field.message_type is None:
                target.append(self._scalar(field, value, where))
            elif field.message_type in _ITEMS:
                self._add_item(target, value, where, depth)
            else:
                self.fill(target.add(), _object(value, where), where, depth + 1)

    def _add_item(self, items: Any, value: Any, path: str, depth: int) -> None:
        before = self.repaired
        try:
            self.fill(items.add(), _object(value, path), path, depth + 1)
        except Undecodable as error:
            del items[-1]
            self.repaired = before
            self.invalid += 1
            self.reasons = self.reasons or (str(error),)

    def _scalar(self, field: FieldDescriptor, value: Any, path: str) -> Any:
        scalar = _SCALARS[field.cpp_type](field, value, path)
        if isinstance(scalar, str) and not _is_unicode(scalar):
            self.repaired += 1
            return scalar.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return scalar


def _is_unicode(text: str) -> bool:
    """Whether the text has no half of a surrogate pair alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _fields(message: type[Message]) -> Mapping[str, FieldDescriptor]:
    # The stubs name two classes for what is one at run time.
    fields = cast(Sequence[FieldDescriptor], message.DESCRIPTOR.fields)
    return {field.json_name: field for field in fields}


def _integer(field: FieldDescriptor, value: Any, path: str) -> int:
    number = _whole(value, path, text=field.cpp_type != FieldDescriptor.CPPTYPE_ENUM)
    low, high = _BOUNDS[field.cpp_type]
    if not low <= number <= high:
        raise Undecodable(f"{path}: {number} is out of range")
    return number


def _whole(value: Any, path: str, *, text: bool) -> int:
    if isinstance(value, str) and text and len(value) <= 20:
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdigit():
            return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _expected("an integer", value, path)


def _number(field: FieldDescriptor, value: Any, path: str) -> float:
    del field
    if isinstance(value, str):
        try:
            return _FLOATS[value] if value in _FLOATS else _finite(value)
        except ValueError as error:
            raise _expected("a number", value, path) from error
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _expected("a number", value, path)
    try:
        return float(value)
    except OverflowError as error:
        raise Undecodable(f"{path}: the number is out of range") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or text != text.strip() or "_" in text:
        raise ValueError(text)
    return number


def _boolean(field: FieldDescriptor, value: Any, path: str) -> bool:
    del field
    if not isinstance(value, bool):
        raise _expected("true or false", value, path)
    return value


def _text(field: FieldDescriptor, value: Any, path: str) -> str | bytes:
    if not isinstance(value, str):
        raise _expected("a string", value, path)
    if field.type != FieldDescriptor.TYPE_BYTES:
        return value
    return _id(field.name, value) if field.name in _IDS else _base64(value, path)


def _id(name: str, text: str) -> bytes:
    try:
        return binascii.unhexlify(text)
    except ValueError:
        return _NOT_HEX.get(name, b"")


def _base64(text: str, path: str) -> bytes:
    plain = text.translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as error:
        raise _expected("base64", text, path) from error


_SCALARS: dict[int, Callable[[FieldDescriptor, Any, str], Any]] = {
    **dict.fromkeys(_BOUNDS, _integer),
    FieldDescriptor.CPPTYPE_DOUBLE: _number,
    FieldDescriptor.CPPTYPE_FLOAT: _number,
    FieldDescriptor.CPPTYPE_BOOL: _boolean,
    FieldDescriptor.CPPTYPE_STRING: _text,
}


def _object(value: Any, path: str) -> _Object:
    if not isinstance(value, dict):
        raise _expected("an object", value, path)
    return cast(_Object, value)  # json.loads makes only string keys


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _expected("a list", value, path)
    return cast(list[Any], value)  # of whatever: its elements are checked one by one


def _expected(what: str, value: Any, path: str) -> Undecodable:
    return Undecodable(f"{path}: expected {what}, got {type(value).__name__}")
