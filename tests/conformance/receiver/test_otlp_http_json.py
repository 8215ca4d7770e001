"""OTLP/JSON: rows J1 to J6 of the conformance table."""

import json
from typing import Any

import pytest

from tests.support.otlp_http import ID, JSON, one_span, post, rejected
from tests.support.receiving import posted, serving
from tests.support.table import for_each


@pytest.mark.parametrize("text", [ID.lower(), ID.upper(), ID[:16].upper() + ID[16:]])
async def test_j1_ids_are_hex_in_any_case(text: str) -> None:
    """J1: links too."""
    async with serving() as served:
        sent = one_span(traceId=text, parentSpanId="B7ad6b7169203332", links=[{"traceId": text}])

        reply = await post(served.url, sent, JSON)

        (got,) = served.log.spans()
        assert reply.json() == {}
        assert got.trace_id.hex() == ID
        assert got.parent_span_id.hex() == "b7ad6b7169203332"
        assert got.links[0].trace_id.hex() == ID


@pytest.mark.parametrize(
    "fields",
    [{"traceId": ID[:31]}, {"traceId": "x" * 32}, {"traceId": ""}, {"spanId": "not hex at all!!"}],
)
async def test_j1_an_id_that_is_not_hex_rejects_its_span(fields: dict[str, str]) -> None:
    """J1."""
    reply, served = await posted(one_span(**fields), JSON)

    assert reply.status_code == 200
    assert reply.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert served.log.written == []


async def test_j1_other_bytes_are_base64() -> None:
    """J1."""
    attribute = {"key": "raw", "value": {"bytesValue": "+/8="}}
    async with serving() as served:
        await post(served.url, one_span(attributes=[attribute]), JSON)

        assert served.log.spans()[0].attributes[0].value.bytes_value == b"\xfb\xff"


@pytest.mark.parametrize(
    ("kind", "taken"), [(2, 1), (99, 1), ("SPAN_KIND_SERVER", 0), ("2", 0), (1.5, 0)]
)
async def test_j2_enums_are_numbers_only(kind: Any, taken: int) -> None:
    """J2."""
    reply, served = await posted(one_span(kind=kind), JSON)

    assert rejected(reply) == 1 - taken
    assert [int(s.kind) for s in served.log.spans()] == [kind] * taken


async def test_j3_unknown_fields_are_ignored_at_every_level() -> None:
    """J3."""
    new: dict[str, Any] = {"futureField": {"x": [1]}}
    attribute = {"key": "k", "value": {"stringValue": "v", **new}, **new}
    plain = {"traceId": ID, "spanId": "b7ad6b7169203331", "attributes": [attribute], **new}
    scope = {"scope": {"name": "s", **new}, "spans": [plain], **new}
    resource = {"resource": {"attributes": [attribute], **new}, "scopeSpans": [scope], **new}
    sent = json.dumps({"resourceSpans": [resource], **new}).encode()
    reply, served = await posted(sent, JSON)

    assert reply.json() == {}
    assert served.log.spans()[0].attributes[0].value.string_value == "v"


async def test_j4_snake_case_is_not_the_field() -> None:
    """J4: ignored as unknown: zero spans, success."""
    reply, served = await posted(one_span().replace(b"resourceSpans", b"resource_spans"), JSON)

    assert (reply.status_code, reply.json()) == (200, {})
    assert served.log.written == []


@pytest.mark.parametrize("number", ["5", 5, 5.0, "-9223372036854775808", 9007199254740991])
async def test_j5_integers_are_strings_or_numbers(number: Any) -> None:
    """J5."""
    attribute = {"key": "n", "value": {"intValue": number}}
    async with serving() as served:
        sent = one_span(attributes=[attribute], startTimeUnixNano="1760000000000000000")

        reply = await post(served.url, sent, JSON)

        assert reply.json() == {}
        (got,) = served.log.spans()
        assert got.attributes[0].value.int_value == int(number)
        assert got.start_time_unix_nano == 1_760_000_000_000_000_000


@pytest.mark.parametrize("number", ["five", "1e3", True, "9223372036854775808", 0.5, [], ""])
async def test_j5_what_is_not_an_integer_rejects_its_span(number: Any) -> None:
    """J5."""
    attribute = {"key": "n", "value": {"intValue": number}}
    reply, _ = await posted(one_span(attributes=[attribute]), JSON)

    assert rejected(reply) == 1
    assert "intValue" in reply.json()["partialSuccess"]["errorMessage"]


async def test_j6_nan_and_null_as_protobuf_json_has_them() -> None:
    """J6: "NaN" and "Infinity" are legal, null is absent."""
    values = [{"doubleValue": "NaN"}, {"doubleValue": "-Infinity"}, {"doubleValue": 1}]
    attributes = [{"key": "d", "value": value} for value in values]
    reply, served = await posted(one_span(attributes=attributes, status=None), JSON)

    assert reply.json() == {}
    (got,) = served.log.spans()
    nan, infinite, one = (a.value.double_value for a in got.attributes)
    assert nan != nan  # noqa: PLR0124 - what NaN is
    assert (infinite, one) == (float("-inf"), 1.0)
    assert not got.HasField("status")


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


async def test_j6_two_values_of_one_reject_their_span() -> None:
    """J6."""
    two = [{"key": "two", "value": {"intValue": 1, "boolValue": True}}]
    async with serving() as served:
        assert rejected(await post(served.url, one_span(attributes=two), JSON)) == 1
        assert served.count("http", "invalid") == 1


async def test_j6_values_are_nested_to_a_limit() -> None:
    """J6: as deep as protobuf itself goes, no deeper."""

    def nested(levels: int) -> bytes:
        value: dict[str, Any] = {"stringValue": "x"}
        for _ in range(levels):
            value = {"arrayValue": {"values": [value]}}
        return one_span(attributes=[{"key": "deep", "value": value}])

    async with serving() as served:
        fine = await post(served.url, nested(20), JSON)
        bomb = await post(served.url, nested(60), JSON)

        assert (rejected(fine), rejected(bomb)) == (0, 1)
