"""OTLP/JSON to protobuf (rows J1 to J6 are held over HTTP in tests/conformance), and what one request may hold."""

import json
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import TooLarge, Undecodable
from collector.otlp import walk, wire
from collector.otlp.json import to_protobuf
from collector.otlp.split import split_by_trace
from tests.support.hostile import field_of
from tests.support.otlp import body, span


def read(document: Any) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(
        to_protobuf(json.dumps(document).encode(), ExportTraceServiceRequest).request
    )


def test_a_parent_that_is_not_hex_does_not_make_a_root() -> None:
    span = {"traceId": "01" * 16, "spanId": "02" * 8, "parentSpanId": "none"}

    got = read({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})

    assert got.resource_spans[0].scope_spans[0].spans[0].parent_span_id not in (b"", bytes(8))


def test_an_empty_message_is_there_and_null_is_not() -> None:
    got = read({"resourceSpans": [{"resource": {}}, {"resource": None}]})

    assert [r.HasField("resource") for r in got.resource_spans] == [True, False]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"resourceSpans": [{"schemaUrl": 5}]}, r"resourceSpans\[0\].schemaUrl: expected a string"),
        ({"resourceSpans": 5}, "resourceSpans: expected a list, got int"),
        (
            {"resourceSpans": [{"resource": {"droppedAttributesCount": -1}}]},
            r"droppedAttributesCount: -1 is out of range",
        ),
        *[
            (
                {"resourceSpans": [{"resource": {"attributes": [{"value": {kind: value}}]}}]},
                f"{kind}: {said}",
            )
            for kind, value, said in (
                ("boolValue", 1, "expected true or false, got int"),
                ("bytesValue", "$", "expected base64, got str"),
                ("doubleValue", "1_0", "expected a number, got str"),
                ("doubleValue", 10**400, "the number is out of range"),
            )
        ],
    ],
)
def test_the_message_names_the_field(document: Any, message: str) -> None:
    with pytest.raises(Undecodable, match=message):
        read(document)


# --- what one request may hold ---------------------------------------------------------------------------------------


LARGE = 64 << 20


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FIELDS", 40_000)
    monkeypatch.setattr("collector.otlp.json.MAX_FIELDS", 1_000)
    monkeypatch.setattr(wire, "MAX_SPANS", 100)
    monkeypatch.setattr(walk, "MAX_TRACES", 50)


@pytest.mark.parametrize(
    ("request_", "items"),
    [
        (b"\x0a\x00" * 40_001, 1),
        (b"\x78\x00" * 40_001, 1),
        (field_of(1, b"\x12\x00" * 40_001), 1),
        (field_of(1, field_of(2, b"\x12\x00" * 101)), 101),
        (body(*[span(n, n) for n in range(1, 52)]), 51),
        (field_of(1, field_of(2, field_of(2, b"\x4a\x00" * 40_001))), 1),
    ],
    ids=["resources", "unknown", "scopes", "spans", "traces", "attributes"],
)
def test_more_elements_than_a_request_may_have_are_refused(request_: bytes, items: int) -> None:
    with pytest.raises(TooLarge) as raised:
        split_by_trace(request_, max_item=LARGE)

    assert raised.value.items == items


@pytest.mark.parametrize("element", [b"{}", b"[]", b"0", b'""'])
def test_elements_of_json_count_before_they_are_parsed(element: bytes) -> None:
    with pytest.raises(TooLarge):
        to_protobuf(b'{"unknown":[' + b",".join([element] * 1_001) + b"]}", _REQUEST)


@pytest.mark.parametrize("text", [b",{[" * 1_000, b'\\",' * 1_000, b"\\\\"])
def test_punctuation_in_texts_does_not_count(text: bytes) -> None:
    sent = b'{"unknown":["' + text + b'"],"resourceSpans":[{}]}'

    assert to_protobuf(sent, _REQUEST).request == b"\x0a\x00"


_REQUEST = ExportTraceServiceRequest
