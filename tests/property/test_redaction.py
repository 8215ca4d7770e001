"""What holds for any request and any text: the walk changes what a parser would change, once, and nothing else."""

import json

from google.protobuf.message import Message
from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.otlp.marking import Marking, Steps
from collector.otlp.redaction import Redactor
from collector.otlp.repair import DecodedRequest
from tests.property.test_receiver import damage, grouped, mutated, steady
from tests.support.examples import examples
from tests.support.planted import map_texts, texts_of

OWN = {"order": r"ORD-\d{3}", "low": r"\bq[a-z]+"}
PATTERNS = {kind: kind for kind in ("email", "card", "phone", "token")} | OWN
MARKING = Marking(PATTERNS)
TOOL = Redactor(MARKING)
SECRETS = (
    "jane@example.org",
    "4539 1488 0343 6467",
    "+49 170 5551234",
    "ghp_abcdefghij0123456789ABCD",
    "ORD-774",
)
pieces = st.sampled_from(
    (*SECRETS, "qed", "\\", '"', "\\n", "\\u0040", " ", "{", "ü", "@", "0", "1.5", "😀")
)
texts = st.lists(pieces, max_size=8).map("".join)


def marked(text: str) -> str:
    found = MARKING.text(text.encode(), Steps())
    return text if found is None else found.decode()


def mark_numbers(message: Message) -> None:
    """Integers that are a card's number become its marker."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for child in list(value) if field.is_repeated else [value]:
                mark_numbers(child)
        elif isinstance(message, AnyValue) and field.name == "int_value":
            marker = MARKING.number(value)
            if marker is not None:
                message.string_value = marker.decode()


def with_number(value: int) -> ExportTraceServiceRequest:
    """A request with one attribute, a number."""
    span = Span(trace_id=b"t" * 16, span_id=b"s" * 8)
    span.attributes.add(key="n").value.int_value = value
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])]
    )


@steady
@given(grouped(valid=True), st.lists(texts, min_size=1, max_size=6))
@example(with_number(6971207975349), [""])
def test_the_walk_changes_what_a_parser_would(
    sent: ExportTraceServiceRequest, planted: list[str]
) -> None:
    count = 0

    def plant(text: str) -> str:
        nonlocal count
        count += 1
        return text + planted[count % len(planted)]

    map_texts(sent, plant)
    walked = TOOL(DecodedRequest(sent.SerializeToString()), ExportTraceServiceRequest)
    map_texts(sent, marked)
    mark_numbers(sent)

    assert ExportTraceServiceRequest.FromString(walked.request) == sent


@steady
@given(texts)
@example("ORD-774ORD-774")
@example("jane@example.org1.54539 1488 0343 6467")
def test_a_secret_among_anything_is_gone_and_stays_gone(text: str) -> None:
    once = marked(text + " , " + SECRETS[0] + " , ")

    assert SECRETS[0] not in once
    assert "ORD-774" not in once
    assert marked(once) == once


@settings(steady, max_examples=examples(50))
@given(
    st.lists(
        texts
        | st.integers()
        | st.just("[4539148803436467, 1]")
        | st.just(4539148803436467)
        | st.dictionaries(texts, texts | st.sampled_from([4539148803436467, 1.5]), max_size=3),
        max_size=4,
    )
)
def test_json_stays_json(value: object) -> None:
    for written in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps(json.dumps(value)),
    ):
        json.loads(marked(written))


@steady
@given(texts)
def test_the_hint_misses_nothing(text: str) -> None:
    if marked(text) != text:
        data = b"1" + text.encode() + b"1"
        assert MARKING.may_match(data, 1, len(data) - 1)


@steady
@given(grouped(valid=False).map(ExportTraceServiceRequest.SerializeToString), damage)
def test_what_is_damaged_is_refused_or_redacted(sent: bytes, places: list[tuple[int, int]]) -> None:
    whole = mutated(sent, places)
    try:
        result = TOOL(DecodedRequest(whole), ExportTraceServiceRequest)
        again = ExportTraceServiceRequest.FromString(result.request)
    except Exception as error:  # noqa: BLE001 - which of them does not matter here
        assert type(error).__name__ in ("Undecodable", "TooLarge", "DecodeError")  # noqa: PT017
        return
    assert texts_of(again) == [marked(each) for each in texts_of(again)]
