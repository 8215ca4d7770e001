"""What one request may hold beside its bytes."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import TooLarge
from collector.otlp import walk, wire
from collector.otlp.json import to_protobuf
from collector.otlp.split import LARGE_REQUEST, split_by_trace
from collector.otlp.walk import LARGE_SPAN
from tests.support.hostile import field_of
from tests.support.otlp import body, span

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


def test_a_large_request_is_checked_span_by_span_and_repaired() -> None:
    texts = ["x" * LARGE_SPAN] * (LARGE_REQUEST // LARGE_SPAN)
    sound = body(*[span(1, n, text=text) for n, text in enumerate(texts, 1)])
    sent = body(*[span(1, n, text=text) for n, text in enumerate([*texts, "needle"], 1)])

    assert split_by_trace(sound, max_item=LARGE).pieces[0].value == sound
    result = split_by_trace(sent.replace(b"needle", b"nee\xffle"), max_item=LARGE)

    assert (result.accepted, result.repaired) == (len(texts) + 1, 1)


_REQUEST = ExportTraceServiceRequest
