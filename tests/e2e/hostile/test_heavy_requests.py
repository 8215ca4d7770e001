"""Small bodies that unfold to millions of elements: refused for good while everybody else is served."""

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.support.hostile import PROTOBUF, bystanders, field_of, post, resident, zipped
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

UNFOLDED = 62 << 20
JSON = {"content-type": "application/json"}


def many(field: bytes) -> bytes:
    return field * (UNFOLDED // len(field))


def empty_spans() -> bytes:
    return field_of(1, field_of(2, many(b"\x12\x00")))


def empty_resources() -> bytes:
    return many(b"\x0a\x00")


def unknown_fields_of_a_resource() -> bytes:
    return field_of(1, many(b"\x78\x00"))


def a_trace_for_every_span() -> bytes:
    """Valid spans of 30 bytes, each with a trace id of its own."""
    one = struct.Struct(">2B2s8sQ2s8s")
    ids = range(1, UNFOLDED // (one.size + 2))
    spans = (
        one.pack(0x12, 28, b"\x0a\x10", b"manytrac", number, b"\x12\x08", b"one span")
        for number in ids
    )
    return field_of(1, field_of(2, b"".join(spans)))


def attributes_without_end() -> bytes:
    """Four good spans, each just within `windows.trace.max_bytes`, with empty attributes by the million."""
    ids = [field_of(1, b"\x01" * 16) + field_of(2, bytes([n]) * 8) for n in range(1, 5)]
    spans = (field_of(2, each + b"\x4a\x00" * (15 << 19)) for each in ids)
    return field_of(1, field_of(2, b"".join(spans)))


def as_json(element: str, around: str) -> bytes:
    """JSON counts at what it weighs decoded."""
    filling = ",".join([element] * ((UNFOLDED - len(around)) // (len(element) + 1)))
    return around.replace("@", filling).encode()


BODIES: Mapping[str, tuple[Mapping[str, str], Callable[[], bytes]]] = {
    "spans": (PROTOBUF, empty_spans),
    "resources": (PROTOBUF, empty_resources),
    "unknown": (PROTOBUF, unknown_fields_of_a_resource),
    "traces": (PROTOBUF, a_trace_for_every_span),
    "attributes": (PROTOBUF, attributes_without_end),
    "json resources": (JSON, partial(as_json, "{}", '{"resourceSpans":[@]}')),
    "json texts": (JSON, partial(as_json, '""', '{"unknown":[@]}')),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all, so that what one request leaves behind counts against the next one too."""
    with Service(tmp_path_factory.mktemp("heavy") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def held(service: Service) -> int:
    """Bytes that the process takes at rest."""
    return resident(service.pid)


@pytest.mark.parametrize("name", BODIES)
def test_millions_of_elements_are_refused_and_delay_no_other_sender(
    service: Service, held: int, name: str
) -> None:
    kind, make = BODIES[name]
    body = zipped(make())

    with bystanders(service, before=held) as toll:
        code, answer = post(service.http, body, {**kind, "content-encoding": "gzip"})

    assert toll.above(wait=10.0, cpu=4.0, memory=512 << 20) == []
    if code == 200 and kind == PROTOBUF:
        assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    else:  # unknown fields of JSON are ignored, where they cost little
        assert code in ((200, 400, 413) if name == "json texts" else (400, 413))
