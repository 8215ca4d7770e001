"""OTLP/JSON: rows J1 to J6 of the conformance table."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.otlp import ID, JSON, one_span, rejected
from tests.support.receiving import posted
from tests.support.table import for_each


def with_value(**value: Any) -> dict[str, Any]:
    """Fields of a span with one attribute."""
    return {"attributes": [{"key": "k", "value": value}]}


def value(of: Span) -> AnyValue:
    return of.attributes[0].value


def lists(levels: int) -> dict[str, Any]:
    """A text in a list in a list ..."""
    made: dict[str, Any] = {"stringValue": "x"}
    for _ in range(levels):
        made = {"arrayValue": {"values": [made]}}
    return with_value(**made)


@pytest.mark.parametrize("text", [ID.lower(), ID.upper(), ID[:16].upper() + ID[16:]])
async def test_j1_ids_are_hex_in_any_case(text: str) -> None:
    """J1: links too."""
    fields: dict[str, Any] = {"parentSpanId": "B7ad6b7169203332", "links": [{"traceId": text}]}
    _, served = await posted(one_span(traceId=text, **fields), JSON)

    (got,) = served.log.spans()
    assert (got.trace_id.hex(), got.links[0].trace_id.hex()) == (ID, ID)
    assert got.parent_span_id.hex() == "b7ad6b7169203332"


READ: list[tuple[dict[str, Any], Callable[[Span], object], object]] = [
    (with_value(bytesValue="+/8="), lambda s: value(s).bytes_value, b"\xfb\xff"),  # J1: base64
    ({"kind": 2}, lambda s: s.kind, 2),
    ({"kind": 99}, lambda s: s.kind, 99),
    *(
        (with_value(intValue=number), lambda s: value(s).int_value, int(number))
        for number in ("5", 5, 5.0, "-9223372036854775808", 9007199254740991)
    ),
    ({"startTimeUnixNano": "1760000000000000000"}, lambda s: s.start_time_unix_nano, 176 * 10**16),
    (with_value(doubleValue="NaN"), lambda s: math.isnan(value(s).double_value), True),
    (with_value(doubleValue="-Infinity"), lambda s: value(s).double_value, float("-inf")),
    (with_value(doubleValue=1), lambda s: value(s).double_value, 1.0),
    ({"status": None}, lambda s: s.HasField("status"), False),  # J6: null is absent
    (lists(20), lambda s: len(s.attributes), 1),
]


@for_each(("fields", "got", "expected"), READ)
async def test_what_is_otlp_is_read(
    fields: dict[str, Any], got: Callable[[Span], object], expected: object
) -> None:
    reply, served = await posted(one_span(**fields), JSON)

    assert reply.json() == {}
    assert got(served.log.spans()[0]) == expected


WRONG_NUMBERS: tuple[Any, ...] = ("five", "1e3", True, "9223372036854775808", 0.5, [], "")


@for_each(
    ("fields", "why"),
    [
        *(({"traceId": each}, "") for each in (ID[:31], "x" * 32, "")),  # J1
        ({"spanId": "not hex at all!!"}, ""),
        *(({"kind": each}, "") for each in ("SPAN_KIND_SERVER", "2", 1.5)),  # J2
        ({"name": {"not": "a string"}}, ""),
        *(
            (with_value(intValue=each), "intValue")  # J5
            for each in WRONG_NUMBERS
        ),
        (with_value(intValue=1, boolValue=True), ""),  # J6
        (lists(60), ""),  # J6: as deep as protobuf itself goes, no deeper
    ],
)
async def test_what_is_not_rejects_its_span_alone(fields: dict[str, Any], why: str) -> None:
    both = json.loads(one_span())
    both["resourceSpans"] += json.loads(one_span(**fields))["resourceSpans"]
    reply, served = await posted(json.dumps(both).encode(), JSON)

    assert rejected(reply) == 1
    assert why in reply.json()["partialSuccess"]["errorMessage"]
    assert len(served.log.spans()) == 1
    assert served.count("http", "invalid") == 1


async def test_j3_unknown_fields_are_ignored_at_every_level() -> None:
    """J3. J4: snake_case is not the field, but unknown."""
    new: dict[str, Any] = {"futureField": {"x": [1]}, "resource_spans": [{}]}
    attribute = {"key": "k", "value": {"stringValue": "v", **new}, **new}
    plain = {"traceId": ID, "spanId": "b7ad6b7169203331", "attributes": [attribute], **new}
    scope = {"scope": {"name": "s", **new}, "spans": [plain], **new}
    resource = {"resource": {"attributes": [attribute], **new}, "scopeSpans": [scope], **new}
    reply, served = await posted(json.dumps({"resourceSpans": [resource], **new}).encode(), JSON)

    assert reply.json() == {}
    assert [value(each).string_value for each in served.log.spans()] == ["v"]


@for_each(
    "sent",
    [
        b'{"resourceSpans": NaN}',
        b'{"resourceSpans": [], "resourceSpans": []}',
        b'{"resourceSpans": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": ["x"]}',
        b"[]",
        b"",
        b"{",
        b"\xff{}",
        b'{"resourceSpans": [{"resource": {"attributes": [{"value": {"intValue": "x"}}]}}]}',
    ],
)
async def test_j6_what_is_not_json_or_not_otlp_is_400(sent: bytes) -> None:
    """J6: bare NaN, duplicate keys, nesting bombs, wrong shapes, a fault outside of the spans."""
    reply, served = await posted(sent, JSON)

    assert reply.status_code == 400
    assert served.log.written == []
    assert served.count("http", "invalid") == 1


@for_each("text", [rb"\ud83d", rb"\udc00 x", rb"\ud83d\ud83d", b"\xff\xfe"])
async def test_a_text_that_is_not_unicode_is_repaired(text: bytes) -> None:
    """Half an emoji as an escape, or bytes that are not UTF-8."""
    reply, served = await posted(one_span(name="damaged").replace(b"damaged", text), JSON)

    assert (reply.status_code, reply.json()) == (200, {})
    assert "\ufffd" in served.log.spans()[0].name
    assert served.counted("strings_repaired_total", transport="http") == 1
