"""Whose trace a piece belongs to, before it is read."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.assembly.scan import NAME, service_name
from tests.support.spans import Made, request


def test_the_first_resource_names_the_service() -> None:
    made = [Made(span=1, service="shop"), Made(span=2, service="desk")]

    assert service_name(request(*made)) == "shop"
    assert service_name(request(Made(span=1, service="x" * 1000))) == "x" * NAME


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        b"\xff\xff",
        b"\x0a\x04\x0a\x02\xff\xff",
        ExportTraceServiceRequest().SerializeToString(),
    ],
)
def test_a_piece_without_a_name_has_none(piece: bytes) -> None:
    assert service_name(piece) == ""
