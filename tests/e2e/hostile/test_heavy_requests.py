"""Small bodies that unfold to millions of elements: refused for good while everybody else is served."""

import struct
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.support.hostile import bystanders, field_of, post, resident, zipped
from tests.support.service import Service

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

UNFOLDED = 62 << 20
WAIT = 10.0
CPU = 4.0
MEMORY = 512 << 20
FINAL = {400, 413}
"""What no sender sends again."""
JSON = {"content-type": "application/json"}


def spans(inner: bytes) -> bytes:
    """A request of one scope that holds these span fields."""
    return field_of(1, field_of(2, inner))


def many(field: bytes) -> bytes:
    return field * (UNFOLDED // len(field))


def empty_spans() -> bytes:
    return spans(many(b"\x12\x00"))


def empty_resources() -> bytes:
    return many(b"\x0a\x00")


def empty_scopes() -> bytes:
    return field_of(1, many(b"\x12\x00"))


def unknown_fields() -> bytes:
    return many(b"\x78\x00")


def unknown_fields_of_a_resource() -> bytes:
    return field_of(1, many(b"\x78\x00"))


def a_trace_for_every_span() -> bytes:
    """Valid spans of 30 bytes, each with a trace id of its own."""
    one = struct.Struct(">2B2s8sQ2s8s")
    count = UNFOLDED // (one.size + 2)
    return spans(
        b"".join(
            one.pack(0x12, 28, b"\x0a\x10", b"manytrac", n + 1, b"\x12\x08", b"one span")
            for n in range(count)
        )
    )


def attributes_without_end() -> bytes:
    """Four good spans, each just within `windows.trace.max_bytes`, with empty attributes by the million."""
    ids = [field_of(1, b"\x01" * 16) + field_of(2, bytes([n]) * 8) for n in range(1, 5)]
    return spans(b"".join(field_of(2, each + b"\x4a\x00" * (15 << 19)) for each in ids))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One for all, so that what one request leaves behind counts against the next one too."""
    with Service(tmp_path_factory.mktemp("heavy") / "data") as running:
        yield running


@pytest.fixture(scope="module")
def held(service: Service) -> int:
    """Bytes that the process takes at rest."""
    return resident(service.pid)


@pytest.mark.parametrize(
    "make",
    [
        empty_spans,
        empty_resources,
        empty_scopes,
        unknown_fields,
        unknown_fields_of_a_resource,
        a_trace_for_every_span,
        attributes_without_end,
    ],
)
def test_millions_of_elements_are_refused_and_delay_no_other_sender(
    service: Service, held: int, make: Callable[[], bytes]
) -> None:
    body = zipped(make())

    with bystanders(service, before=held) as toll:
        code, answer = post(service.http, body, {"content-encoding": "gzip"})

    assert toll.above(wait=WAIT, cpu=CPU, memory=MEMORY) == []
    assert (
        code in FINAL
        or ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans
    )


def _json(element: str, around: str) -> bytes:
    filling = ",".join([element] * ((UNFOLDED - len(around)) // (len(element) + 1)))
    return around.replace("@", filling).encode()


@pytest.mark.parametrize(
    "make",
    [
        partial(_json, "{}", '{"resourceSpans":[@]}'),
        partial(_json, "{}", '{"resourceSpans":[{"scopeSpans":[{"spans":[@]}]}]}'),
        partial(_json, "0", '{"unknown":[@]}'),
        partial(_json, "[]", '{"unknown":[@]}'),
        partial(_json, '""', '{"unknown":[@]}'),
    ],
    ids=["resources", "spans", "numbers", "lists", "texts"],
)
def test_json_counts_at_what_it_weighs_decoded(
    service: Service, held: int, make: Callable[[], bytes]
) -> None:
    body = zipped(make())

    with bystanders(service, before=held) as toll:
        code, _ = post(service.http, body, {**JSON, "content-encoding": "gzip"})

    assert toll.above(wait=WAIT, cpu=CPU, memory=MEMORY) == []
    assert code in {200, *FINAL}  # unknown fields are ignored, where they cost little
