"""Whatever arrives: nothing raises, nothing is invented, and the order of arrival changes nothing."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluators.dialects.read import read_trace
from evaluators.dialects.show import show
from evaluators.model import Trace
from tests.support.dialect_spans import TRACE_ID, SpanSpec, any_value, request
from tests.support.examples import examples
from tests.support.recordings import pieces

DATA = Path(__file__).parents[1] / "data" / "captures"
RECORDED = sorted(DATA.glob("*/retry.otlp"))
KEYS = sorted(
    {
        attribute.key
        for path in RECORDED
        for parts in pieces(path).values()
        for part in parts
        for resource_spans in ExportTraceServiceRequest.FromString(part).resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
        for attribute in span.attributes
    }
    | {"gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response", "events", "tool_arguments"}
    | {"langsmith.span.kind", "gen_ai.prompt", "gen_ai.completion", "all_messages_events"}
)
FIELDS = [
    "role",
    "content",
    "parts",
    "type",
    "text",
    "tool_calls",
    "id",
    "name",
    "arguments",
    "messages",
    "function",
]
QUICK = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**63 - 1) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=12,
)
values = (
    st.text(max_size=20)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.booleans()
    | st.binary(max_size=4)
    | st.lists(st.text(max_size=5), max_size=3)
    | st.sampled_from(
        [
            "chat",
            "execute_tool",
            "invoke_agent",
            "LLM",
            "TOOL",
            "AGENT",
            '"TOOL"',
            "generation",
            "tool",
        ]
    )
    | json_values.map(json.dumps)
    | json_values.map(repr)
    | json_values.map(lambda v: json.dumps(json.dumps(v)))
)
attributes = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)
scopes = st.just("") | st.sampled_from(
    [
        "langfuse-sdk",
        "pydantic-ai",
        "gcp.vertex.agent",
        "strands.telemetry.tracer",
        "logfire",
        "ai",
        "autogen-core",
    ]
)
event_names = st.sampled_from(
    ["exception", "gen_ai.choice", "gen_ai.user.message", "gen_ai.content.prompt"]
)


@st.composite
def made_spans(draw: st.DrawFn) -> list[SpanSpec]:
    size = draw(st.integers(1, 6))
    return [
        SpanSpec(
            id=index + 1,
            parent=draw(st.integers(0, 7)),
            name=draw(st.text(max_size=12)),
            attributes=draw(attributes),
            events=draw(st.lists(st.tuples(event_names, attributes), max_size=2)),
            start=draw(st.integers(0, 5)),
            end=draw(st.integers(0, 9)),
            status=draw(st.integers(0, 3)),
            scope=draw(scopes),
            flags=draw(st.sampled_from([0, 0x100, 0x300, 0x301])),
        )
        for index in range(size)
    ]


def read(parts: list[bytes], trace_id: str = TRACE_ID) -> Trace:
    trace = read_trace(parts, trace_id=trace_id, closed="idle")
    json.dumps(show(trace)).encode()
    return trace


@QUICK
@given(made_spans())
def test_any_attributes_under_any_keys_are_read(spans: list[SpanSpec]) -> None:
    trace = read([request(*spans)])

    assert trace.spans == len(spans)


@QUICK
@given(made_spans(), st.randoms(use_true_random=False))
def test_the_order_of_arrival_changes_nothing(spans: list[SpanSpec], random: Any) -> None:
    shuffled = list(spans)
    random.shuffle(shuffled)

    assert read([request(span) for span in shuffled]) == read([request(*spans)])


@QUICK
@given(st.lists(st.binary(max_size=60), max_size=3))
def test_bytes_that_are_no_request_never_raise_anything_but_value_error(parts: list[bytes]) -> None:
    with pytest.raises(ValueError, match="could be read"):
        read_trace(parts, trace_id=TRACE_ID, closed="idle")


@QUICK
@given(st.data())
def test_damaged_bytes_give_a_trace_or_value_error(data: st.DataObject) -> None:
    raw = bytearray(
        request(SpanSpec(id=1, attributes={"gen_ai.operation.name": "chat", "input.value": "{}"}))
    )
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(ValueError):
        read([bytes(raw)])


def mutated(path: Path, data: st.DataObject) -> tuple[str, list[bytes]]:
    """A recording whose values were cut or whose attributes were evicted, as an SDK would."""
    found = sorted(pieces(path).items())
    trace_id, parts = found[data.draw(st.integers(0, len(found) - 1))]
    limit = data.draw(st.integers(1, 400))
    evict = data.draw(st.integers(0, 12))
    wrong = data.draw(st.sampled_from([None, None, True, 7, 1.5, ["x"]]))
    cut: list[bytes] = []
    for part in parts:
        message = ExportTraceServiceRequest.FromString(part)
        for resource_spans in message.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    del span.attributes[:evict]
                    for attribute in span.attributes:
                        if attribute.value.HasField("string_value"):
                            attribute.value.string_value = attribute.value.string_value[:limit]
                    if wrong is not None and span.attributes:
                        index = data.draw(st.integers(0, len(span.attributes) - 1))
                        span.attributes[index].value.CopyFrom(any_value(wrong))
        cut.append(message.SerializeToString())
    return trace_id, cut


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.parent.name)
@settings(QUICK, max_examples=examples(15))
@given(data=st.data())
def test_a_cut_recording_is_read_and_nothing_is_invented(path: Path, data: st.DataObject) -> None:
    trace_id, parts = mutated(path, data)

    trace = read(parts, trace_id)

    carried = letters_of(parts)
    for text in texts_of(trace):
        assert letters(text) in carried, text


def letters(text: str) -> str:
    """Only what survives every way of quoting."""
    text = re.sub(r"\\u[0-9a-f]{4}|\\[a-z]", "", text)
    return re.sub(r"[^a-z0-9]", "", text.lower())


def letters_of(parts: list[bytes]) -> str:
    """All texts of the recording, each span's name and event too, also with their JSON escapes undone."""
    texts: list[str] = []
    for part in parts:
        message = ExportTraceServiceRequest.FromString(part)
        for resource_spans in message.resource_spans:
            texts += [a.value.string_value for a in resource_spans.resource.attributes]
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    texts += [span.name, span.status.message]
                    texts += [a.value.string_value for a in span.attributes]
                    texts += [
                        v.string_value for a in span.attributes for v in a.value.array_value.values
                    ]
                    texts += [a.value.string_value for e in span.events for a in e.attributes]
    return "|".join(form for text in texts for form in (letters(text), letters(plain(text))))


def plain(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


def texts_of(trace: Trace) -> list[str]:
    """Every text the trace claims to have found, lists of messages taken one by one."""
    found = [trace.input, trace.output, trace.system, trace.error, trace.agent, *trace.agents]
    found += [call.output for call in trace.model_calls] + [
        tool.name for tool in trace.tools_offered
    ]
    for call in trace.tool_calls:
        found += [call.name, call.id, call.error if call.error != "error" else None]
        found += [call.result if isinstance(call.result, str) else None]
    return [line for text in found if text for line in text.split("\n") if line]


def nested(depth: int) -> bytes:
    """A span whose one attribute is an array in an array in an array ..."""
    value = b"\x0a\x01x"
    for _ in range(depth):
        inner = b"\x0a" + varint(len(value)) + value
        value = b"\x2a" + varint(len(inner)) + inner
    pair = b"\x0a\x01k\x12" + varint(len(value)) + value
    ids = b"\x0a\x10" + bytes.fromhex(TRACE_ID) + b"\x12\x0812345678"
    return ids + b"\x4a" + varint(len(pair)) + pair


def varint(size: int) -> bytes:
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size])


def in_request(span: bytes) -> bytes:
    """A request around a span that no library would serialise."""
    scope_spans = b"\x12" + varint(len(span)) + span
    resource_spans = b"\x12" + varint(len(scope_spans)) + scope_spans
    return b"\x0a" + varint(len(resource_spans)) + resource_spans


@pytest.mark.parametrize(
    "span",
    [
        nested(150),
        nested(0).replace(b"\x0a\x01x", b"\x0a\x01\xff"),
        nested(0).replace(b"\x0a\x01k", b"\x0a\x01\xff"),
    ],
    ids=["nesting bomb", "value no UTF-8", "key no UTF-8"],
)
def test_a_span_that_does_not_parse_costs_only_itself(span: bytes) -> None:
    good = request(SpanSpec(id=1, attributes={"session.id": "s"}))

    trace = read([good + in_request(span)])

    assert (trace.spans, trace.truncated, trace.session_id) == (1, True, "s")
    assert "truncated" in trace.gaps


def test_a_span_made_by_hand_is_read_when_it_is_sound() -> None:
    assert read([in_request(nested(0))]).spans == 1


@pytest.mark.parametrize("depth", [10, 500, 100_000])
def test_deep_json_in_a_value_is_no_more_than_a_text(depth: int) -> None:
    deep = "[" * depth + "]" * depth

    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": deep}

    trace = read([request(SpanSpec(id=1, attributes=chat))])

    assert trace.input is None or isinstance(trace.input, str)
    assert msgspec.json.encode(show(trace))
