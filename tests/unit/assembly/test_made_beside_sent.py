"""Claude's spans in a trace of its caller: they go to the turns of their records, and what is the caller's stays."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.log.port import SPANS
from collector.otlp.scan import scan
from collector.otlp.split_logs import joined_logs, joined_traces
from collector.records.span_refs import SpanRef
from evaluators.dialects.turns.place import turn_trace_id
from tests.support.assembling import Site, newest
from tests.support.spans import Made, child, request, root, span_id, trace_id

MS = 1_000_000
SERVICE = "shop"
CALLER = root(1)
WORK, AGAIN = 20, 21


def claude_spans(*spans: Made) -> bytes:
    """Its beta spans, in session "s"."""
    message = ExportTraceServiceRequest.FromString(request(*spans))
    (scope,) = message.resource_spans[0].scope_spans
    scope.scope.name = "com.anthropic.claude_code.tracing"
    for span in scope.spans:
        span.attributes.add(key="session.id").value.string_value = "s"
    return message.SerializeToString()


def prompt(turn: str, at: int) -> bytes:
    """The record of a prompt at so many milliseconds, under the span of the caller."""
    message = ExportLogsServiceRequest()
    group = message.resource_logs.add()
    group.resource.attributes.add(key="service.name").value.string_value = SERVICE
    scope = group.scope_logs.add()
    scope.scope.name = "com.anthropic.claude_code.events"
    record = scope.log_records.add(
        time_unix_nano=at * MS, trace_id=trace_id(1), span_id=span_id(CALLER.span)
    )
    told = {"event.name": "user_prompt", "session.id": "s", "prompt.id": turn, "prompt": turn}
    for key, value in told.items():
        record.attributes.add(key=key).value.string_value = value
    return message.SerializeToString()


def arrive(site: Site, split: bytes, *, logs: bool) -> None:
    join = joined_logs if logs else joined_traces
    for piece in join(split, max_item=1 << 20, joined=1 << 20).pieces:
        site.log.append(SPANS, piece.value, partition=0)


def spans_by_trace(site: Site) -> dict[bytes, set[bytes]]:
    found: dict[bytes, set[bytes]] = {}
    for each, record in newest(site.traces()).items():
        pieces = [one for one in site.with_spans(record).spans if not isinstance(one, SpanRef)]
        heads = [one for piece in pieces for spans in scan(piece).traces.values() for one in spans]
        found[bytes.fromhex(each)] = {head.span_id for head in heads}
    return found


def test_spans_of_others_stay_in_the_trace_that_an_agents_spans_are_taken_out_of() -> None:
    site = Site()
    site.send(100, child(2))
    arrive(site, claude_spans(Made(span=WORK, parent=1, start=50 * MS)), logs=False)
    site.send(100, CALLER)
    arrive(site, prompt("p", 60), logs=True)
    asyncio.run(site.once(1000))

    found = spans_by_trace(site)
    assert found[trace_id(1)] == {span_id(CALLER.span), span_id(2)}
    assert span_id(WORK) in found[turn_trace_id(SERVICE, "s", "p")]


@pytest.mark.parametrize("records_first", [False, True])
def test_prompts_under_one_span_of_their_caller_have_their_own_spans(records_first: bool) -> None:
    """The span around a turn begins some time before the record of its prompt."""
    site = Site()
    spans = [
        claude_spans(Made(span=WORK, parent=1, start=900 * MS)),
        claude_spans(Made(span=AGAIN, parent=1, start=4_900 * MS)),
    ]
    records = [prompt("p1", 1_000), prompt("p2", 5_000)]
    arriving = [*((each, True) for each in records), *((each, False) for each in spans)]
    for each, logs in arriving if records_first else reversed(arriving):
        arrive(site, each, logs=logs)
    asyncio.run(site.once(1000))

    found = spans_by_trace(site)
    assert span_id(WORK) in found[turn_trace_id(SERVICE, "s", "p1")]
    assert span_id(AGAIN) in found[turn_trace_id(SERVICE, "s", "p2")]


def test_spans_of_which_no_record_comes_are_a_trace_of_their_own() -> None:
    site = Site()
    site.send(100, CALLER)
    arrive(site, claude_spans(Made(span=WORK, parent=1), Made(span=AGAIN, parent=WORK)), logs=False)
    asyncio.run(site.once(1000))

    found = spans_by_trace(site)
    assert found.pop(trace_id(1)) == {span_id(CALLER.span)}
    assert list(found.values()) == [{span_id(WORK), span_id(AGAIN)}]


def test_a_span_of_an_agent_without_a_valid_id_is_rejected_alone() -> None:
    message = ExportTraceServiceRequest.FromString(
        claude_spans(Made(span=WORK, parent=1), Made(span=AGAIN, parent=1))
    )
    message.resource_spans[0].scope_spans[0].spans[1].trace_id = b"short"

    split = joined_traces(message.SerializeToString(), max_item=1 << 20, joined=1 << 20)

    assert (split.accepted, split.rejected) == (1, 1)
