"""What holds for any request: nothing is lost or invented, whatever the bytes, however they are grouped."""

import asyncio
import base64
import itertools
import json
from collections import Counter
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.types import Message

from collector.base.errors import LogFull, LogUnavailable
from collector.base.http_server import BearerTokens
from collector.base.telemetry import Telemetry
from collector.otlp.json import to_protobuf
from collector.otlp.scan import scan
from collector.otlp.split import split_by_trace
from collector.receiver.answers import Code
from collector.receiver.families import ReceiverFamilies
from collector.receiver.http import HttpApp
from collector.receiver.inflate import protobuf, sniff
from collector.receiver.intake import Intake
from collector.receiver.splitter import Splitter
from collector.receiver.wrong_door import WrongDoor
from collector.records.otlp_signals import TRACES
from tests.support.counted import counted
from tests.support.examples import USUAL, examples
from tests.support.otlp import spans_of
from tests.support.received_log import ReceivedLog
from tests.support.receiving import intake

MAX_SPAN = 400
LARGE = 1 << 20
texts = st.text(alphabet='ab "\\\0\nü€😀', max_size=20)
# The machine may be busy: how long an example takes says nothing here.
steady = settings(
    deadline=None, max_examples=examples(USUAL), suppress_health_check=[HealthCheck.too_slow]
)
values = st.recursive(
    st.builds(AnyValue, string_value=texts)
    | st.builds(AnyValue, int_value=st.integers(-(1 << 63), (1 << 63) - 1))
    | st.builds(AnyValue, double_value=st.floats(allow_nan=False))
    | st.builds(AnyValue, bool_value=st.booleans())
    | st.builds(AnyValue, bytes_value=st.binary(max_size=20)),
    lambda inner: st.lists(inner, max_size=3).map(
        lambda children: AnyValue(array_value={"values": children})  # pyright: ignore[reportArgumentType] - dicts do
    ),
    max_leaves=5,
)


@st.composite
def spans(draw: st.DrawFn, *, valid: bool = False) -> Span:
    """Spans of few traces; unless `valid`, some with ids that cannot be accepted, some too large."""
    traces, numbers = st.integers(1, 4), st.integers(1, 1 << 63)
    trace, number = draw(traces).to_bytes(16, "big"), draw(numbers).to_bytes(8, "big")
    made = Span(
        trace_id=trace if valid else draw(st.just(trace) | st.binary(max_size=20)),
        span_id=number if valid else draw(st.just(number) | st.binary(max_size=10)),
        name=draw(texts),
        kind=draw(st.integers(0, 5)),  # pyright: ignore[reportArgumentType] - an enum is an int on the wire
        start_time_unix_nano=draw(st.integers(0, (1 << 64) - 1)),
        flags=draw(st.integers(0, (1 << 32) - 1)),
    )
    for key, value in draw(st.dictionaries(texts, values, max_size=3)).items():
        made.attributes.add(key=key).value.CopyFrom(value)
    if not valid and draw(st.booleans()):
        made.trace_state = "x" * MAX_SPAN
    return made


def build(groups: list[list[list[Span]]]) -> ExportTraceServiceRequest:
    """resources of scopes of spans; each resource and scope has a name of its own."""
    made = ExportTraceServiceRequest()
    for number, scopes in enumerate(groups):
        resource = made.resource_spans.add()
        resource.resource.attributes.add(key="n").value.int_value = number
        for inner, members in enumerate(scopes):
            scope = resource.scope_spans.add()
            scope.scope.name = f"scope {inner}"
            scope.spans.extend(members)
    return made


def grouped(*, valid: bool) -> st.SearchStrategy[ExportTraceServiceRequest]:
    return st.lists(st.lists(st.lists(spans(valid=valid), max_size=4), max_size=3), max_size=3).map(
        build
    )


def keyed(request: ExportTraceServiceRequest) -> Counter[tuple[bytes, bytes, bytes]]:
    """Each span with what stands around it."""
    return Counter(
        (
            resource.resource.SerializeToString(deterministic=True),
            scope.scope.SerializeToString(deterministic=True),
            span.SerializeToString(deterministic=True),
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


def can_be_accepted(span: Span) -> bool:
    return (
        len(span.trace_id) == 16
        and len(span.span_id) == 8
        and any(span.trace_id)
        and any(span.span_id)
        and span.ByteSize() <= MAX_SPAN
    )


@steady
@given(grouped(valid=False))
def test_accepted_and_rejected_together_are_what_was_sent(sent: ExportTraceServiceRequest) -> None:
    result = split_by_trace(sent.SerializeToString(), max_item=MAX_SPAN)

    kept: Counter[tuple[bytes, bytes, bytes]] = Counter()
    for trace_id, value in result.pieces:
        piece = ExportTraceServiceRequest.FromString(value)
        assert {span.trace_id for span in spans_of(piece)} == {trace_id}
        kept += keyed(piece)
    expected = Counter(
        {key: n for key, n in keyed(sent).items() if can_be_accepted(Span.FromString(key[2]))}
    )
    assert kept == expected
    assert result.accepted == expected.total()
    assert result.accepted + result.rejected == keyed(sent).total()


@steady
@given(st.lists(spans(valid=True), max_size=12), st.randoms(use_true_random=False))
def test_any_regrouping_of_the_same_spans_gives_the_same_traces(
    members: list[Span], random: Any
) -> None:
    def traces(*requests: list[Span]) -> dict[bytes, Counter[bytes]]:
        found: dict[bytes, Counter[bytes]] = {}
        for request in requests:
            sent = build([[request]]).SerializeToString()
            for trace_id, value in split_by_trace(sent, max_item=1 << 20).pieces:
                piece = spans_of(ExportTraceServiceRequest.FromString(value))
                found.setdefault(trace_id, Counter()).update(
                    span.SerializeToString(deterministic=True) for span in piece
                )
        return found

    shuffled = list(members)
    random.shuffle(shuffled)
    middle = random.randint(0, len(members))

    assert traces(shuffled[:middle], shuffled[middle:]) == traces(members)


def mutated(data: bytes, places: list[tuple[int, int]]) -> bytes:
    out = bytearray(data)
    for place, byte in places:
        if out:
            out[place % len(out)] = byte
    return bytes(out)


damage = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4)
damaged = st.builds(
    mutated, grouped(valid=False).map(ExportTraceServiceRequest.SerializeToString), damage
)
ALLOWED = {Code.OK, Code.INVALID_ARGUMENT, Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}


def small_intake(log: ReceivedLog) -> Intake:
    return intake(log, max_request=20_000, splitter=Splitter(max_item=MAX_SPAN))


@steady
@given(
    st.binary(max_size=200) | damaged,
    st.sampled_from([None, LogFull("full"), LogUnavailable("away"), ValueError("bug")]),
)
def test_any_bytes_over_grpc_get_an_allowed_code(sent: bytes, fault: Exception | None) -> None:
    log = ReceivedLog()
    log.fails = fault

    answer = asyncio.run(
        small_intake(log).take(
            sent, sender="", signal=TRACES, transport="grpc", decode=protobuf(sniff)
        )
    )

    assert answer.code in ALLOWED
    assert (answer.code is Code.UNAVAILABLE) == (answer.delay is not None)
    assert all(map(spans_of, log.requests()))  # what is in the log can be decoded, and is not empty


async def ask(app: HttpApp, sent: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    """The HTTP status that the application gives."""
    events: list[Message] = []
    incoming: list[Message] = [{"type": "http.request", "body": sent, "more_body": False}]

    async def receive() -> Message:
        return incoming.pop()

    async def send(message: Message) -> None:
        events.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/traces", "headers": headers}
    await app({**scope, "query_string": b"", "root_path": ""}, receive, send)
    return events[0]["status"]


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["resourceSpans", "scopeSpans", "spans", "traceId", "attributes", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
).map(lambda document: json.dumps(document).encode())


@steady
@given(
    st.binary(max_size=200) | damaged | documents,
    st.sampled_from([b"application/json", b"application/x-protobuf", b"text/plain", b"\xff"]),
    st.sampled_from([b"", b"gzip", b"deflate", b"zstd", b"br", b"\xff"]),
)
def test_any_bytes_over_http_get_an_allowed_status(
    sent: bytes, media: bytes, encoding: bytes
) -> None:
    door = WrongDoor(ReceiverFamilies(Telemetry()), grpc_port=lambda: 4317)
    app = HttpApp(
        intake=small_intake(ReceivedLog()),
        bearer=BearerTokens(()),
        wrong_door=door,
        paths={"/v1/traces": TRACES},
        host="127.0.0.1",
    )
    headers = [(b"content-type", media), (b"content-encoding", encoding)]

    status = asyncio.run(ask(app, sent, headers))

    assert status in {200, 400, 413, 415, 503}


def to_otlp_json(request: ExportTraceServiceRequest) -> bytes:
    """protobuf's own JSON with the ids turned from base64 to hex: OTLP/JSON."""
    document = MessageToDict(request, use_integers_for_enums=True)
    _hex(document)
    return json.dumps(document).encode()


def _hex(document: Any) -> None:
    if isinstance(document, list):
        for child in document:  # pyright: ignore[reportUnknownVariableType] - whatever JSON holds
            _hex(child)
    elif isinstance(document, dict):
        for key, child in document.items():  # pyright: ignore[reportUnknownVariableType] - whatever JSON holds
            if key in ("traceId", "spanId"):
                document[key] = base64.b64decode(child).hex()  # pyright: ignore[reportUnknownArgumentType] - a string
            else:
                _hex(child)


@steady
@given(grouped(valid=True))
def test_otlp_json_and_protobuf_say_the_same(sent: ExportTraceServiceRequest) -> None:
    got = ExportTraceServiceRequest.FromString(
        to_protobuf(to_otlp_json(sent), ExportTraceServiceRequest).request
    )

    assert got == sent


@steady
@given(
    st.lists(
        st.tuples(
            st.lists(spans(valid=False), min_size=1, max_size=4),
            st.sampled_from([None, LogFull("full"), LogUnavailable("away"), OSError("disk")]),
        ),
        max_size=6,
    )
)
def test_every_span_is_counted_once_under_random_faults(
    batches: list[tuple[list[Span], Exception | None]],
) -> None:
    """The contract checker's scenarios: accepted, refused and rejected are what was sent; the log has the accepted."""
    log, telemetry = ReceivedLog(), Telemetry()
    clock = itertools.count().__next__  # so that a log that was full is tried again at once
    room = intake(log, telemetry, splitter=Splitter(max_item=MAX_SPAN), clock=clock)
    accepted = sent = 0
    for members, fault in batches:
        log.fails = fault
        body = build([[members]]).SerializeToString()
        answer = asyncio.run(
            room.take(body, sender="", signal=TRACES, transport="grpc", decode=protobuf(sniff))
        )
        sent += len(members)
        accepted += len(members) - answer.rejected if answer.code is Code.OK else 0

    results = ("accepted", "refused", "invalid", "too_large")
    found = [
        counted(telemetry, "spans_received_total", transport="grpc", result=each)
        for each in results
    ]
    assert sum(found) == sent
    assert found[0] == accepted == len(log.spans())


@steady
@given(grouped(valid=False), st.sampled_from([1, 300, 1000, LARGE]))
def test_a_joined_record_is_the_pieces_one_after_the_other(
    sent: ExportTraceServiceRequest, joined: int
) -> None:
    whole = sent.SerializeToString()
    pieces = split_by_trace(whole, max_item=LARGE).pieces

    split = split_by_trace(whole, max_item=LARGE, joined=joined)

    assert b"".join(each.value for each in split.pieces) == b"".join(each.value for each in pieces)
    found = [
        record.value[slice(*stands)]
        for record in split.pieces
        for stands in scan(record.value).ranges.values()
        if stands is not None
    ]
    assert found == [each.value for each in pieces]
    assert all(len(r.value) <= joined or len(scan(r.value).traces) == 1 for r in split.pieces)


@steady
@given(grouped(valid=False), st.sampled_from([300, LARGE]), st.sampled_from([MAX_SPAN, LARGE]))
def test_joining_counts_what_splitting_counts(
    sent: ExportTraceServiceRequest, joined: int, max_item: int
) -> None:
    whole = sent.SerializeToString()

    split = split_by_trace(whole, max_item=max_item, joined=joined)

    counted = split_by_trace(whole, max_item=max_item)
    assert (split.accepted, split.invalid, split.too_large) == (
        counted.accepted,
        counted.invalid,
        counted.too_large,
    )


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    caplog.set_level("CRITICAL")
