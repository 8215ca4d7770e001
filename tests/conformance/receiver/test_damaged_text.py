"""Text that is not Unicode: that string is repaired and counted, the rest of the request is taken as it is."""

import json
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.hostile import field_of
from tests.support.otlp import body, span
from tests.support.otlp_http import JSON, PROTOBUF, post
from tests.support.receiving import Served, export, exported, posted, serving

MARK = "half-an-emoji"
"""Stands for the damaged text while the request is made."""
DAMAGED = (
    b"\xed\xa0\xbd12345678",
    b"\xff\xfe1234567890",
    b"12345678901\xf0\x9f",
    b"\xc0\xaf12345678901",
)
"""A surrogate as UTF-8 bytes, bytes that never occur, a sequence that was cut, an overlong one: as long as MARK."""


def damaged(request: bytes, text: bytes) -> bytes:
    return request.replace(MARK.encode(), text.ljust(len(MARK), b"."))


def three() -> list[Span]:
    return [span(1, 1, text="good"), span(1, 2, text=MARK), span(2, 3, text="also good")]


def repaired(served: Served) -> float:
    """All transports."""
    transports = ("grpc", "http")
    return sum(served.counted("strings_repaired_total", transport=each) for each in transports)


def texts(served: Served) -> set[str]:
    return {each.attributes[0].value.string_value for each in served.log.spans()}


@pytest.mark.parametrize("text", DAMAGED)
async def test_one_damaged_string_of_protobuf_is_repaired(text: bytes) -> None:
    said, served = await exported(damaged(body(*three()), text))

    assert said.code is grpc.StatusCode.OK
    assert said.rejected == 0
    assert served.count("grpc", "accepted") == 3
    assert {"good", "also good"} < texts(served)
    assert any("\ufffd" in each for each in texts(served))
    assert repaired(served) == 1


@pytest.mark.parametrize("transport", ["grpc", "http"])
async def test_a_large_request_is_repaired_too(transport: str) -> None:
    """Above 1 MiB a request is checked span by span, in a thread."""
    sent = damaged(body(*three(), span(3, 4, text="x" * (2 << 20))), DAMAGED[0])
    async with serving(max_item=4 << 20) as served:
        if transport == "grpc":
            assert (await export(served.target, sent)).code is grpc.StatusCode.OK
        else:
            assert (await post(served.url, sent, PROTOBUF)).status_code == 200

        assert served.count(transport, "accepted") == 4
        assert repaired(served) == 1


@pytest.mark.parametrize(
    "text", [rb"\ud83d", rb"\udc00 x", rb"\ud83d\ud83d", b"\xff\xfe"], ids=repr
)
async def test_a_damaged_string_of_json_is_repaired(text: bytes) -> None:
    """Half an emoji as an escape, or bytes that are not UTF-8."""
    reply, served = await posted(_json().replace(MARK.encode(), text), JSON)

    assert (reply.status_code, reply.json()) == (200, {})
    assert served.count("http", "accepted") == 2
    assert any("\ufffd" in each.name for each in served.log.spans())
    assert repaired(served) == 1


def _json() -> bytes:
    spans = [
        {"traceId": "01" * 16, "spanId": f"0{n}" * 8, "name": name}
        for n, name in ((1, "good"), (2, MARK))
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


@pytest.mark.parametrize("place", ["name", "key", "service", "scope", "trace_state", "nested"])
async def test_every_place_of_a_string_is_repaired(place: str) -> None:
    request = ExportTraceServiceRequest.FromString(body(span(1, 1, text="good")))
    _put(request, place)
    async with serving() as served:
        sent = damaged(request.SerializeToString(), DAMAGED[0])
        reply = await post(served.url, sent, PROTOBUF)

        assert reply.status_code == 200
        assert served.count("http", "accepted") == 1
        assert repaired(served) == 1
        ExportTraceServiceRequest.FromString(served.log.requests()[0].SerializeToString())


def _put(request: ExportTraceServiceRequest, place: str) -> None:
    resource = request.resource_spans[0]
    made = resource.scope_spans[0].spans[0]
    match place:
        case "name":
            made.name = MARK
        case "key":
            made.attributes.add(key=MARK).value.string_value = "x"
        case "service":
            resource.resource.attributes[0].value.string_value = MARK
        case "scope":
            resource.scope_spans[0].scope.name = MARK
        case "trace_state":
            made.trace_state = MARK
        case _:
            value = made.attributes.add(key="list").value.array_value.values.add()
            value.kvlist_value.values.add(key="k").value.string_value = MARK


@pytest.mark.parametrize("depth", [48, 49, 50, 120])
async def test_a_value_nested_too_deeply_refuses_its_span_alone(depth: int) -> None:
    """From 48 lists on for a parser of the request, from 50 on for one of the span alone."""
    value = b""
    for _ in range(depth):
        value = field_of(5, field_of(1, value))
    attribute = field_of(9, field_of(1, b"deep") + field_of(2, value))
    deep = span(1, 2).SerializeToString() + attribute
    spans = (span(1, 1).SerializeToString(), deep, span(2, 3).SerializeToString())
    request = field_of(1, field_of(2, b"".join(field_of(2, each) for each in spans)))
    said, served = await exported(request)

    assert said.code is grpc.StatusCode.OK
    assert said.rejected == 1
    assert served.count("grpc", "accepted") == 2
    assert served.count("grpc", "invalid") == 1


async def test_a_json_field_of_a_wrong_kind_refuses_its_span_alone() -> None:
    wrong: list[dict[str, Any]] = [
        {"traceId": "01" * 16, "spanId": "01" * 8, "name": "good"},
        {"traceId": "01" * 16, "spanId": "02" * 8, "name": {"not": "a string"}},
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"spans": wrong}]}]}
    reply, served = await posted(json.dumps(document).encode(), JSON)

    assert reply.status_code == 200
    assert reply.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert served.count("http", "accepted") == 1
