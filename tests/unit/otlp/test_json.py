"""OTLP/JSON to protobuf; the rows J1 to J6 are held over HTTP in tests/conformance."""

import json
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import Undecodable
from collector.otlp.json import to_protobuf


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
