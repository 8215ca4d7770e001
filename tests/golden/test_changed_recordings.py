"""Recordings as other machines would have sent them: what they say does not change.

`SPANWISE_CAPTURES` names another folder of recordings.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from collector.service.recordings import requests
from evaluators.dialects.read import read_trace
from evaluators.model import Trace
from tests.golden.test_captures import FOLDER

Sent = tuple[ResourceSpans, ScopeSpans, Span]
Change = Callable[[list[Sent]], list[Sent]]
MILLISECOND, SECOND = 10**6, 10**9
RECORDINGS = sorted(path for path in FOLDER.glob("*/*.otlp") if "." not in path.stem)
TOOLS = {("gen_ai.operation.name", "execute_tool"), ("openinference.span.kind", "TOOL")}
TOOLS.add(("traceloop.span.kind", "tool"))
"""Attributes of spans that a tool's host writes."""


def sent(path: Path) -> Iterator[Sent]:
    for request in requests(path):
        for group in ExportTraceServiceRequest.FromString(request).resource_spans:
            for scope in group.scope_spans:
                yield from ((group, scope, span) for span in scope.spans)


@cache
def recorded(path: Path) -> dict[str, list[Sent]]:
    """The spans of a recording by trace."""
    found: dict[str, list[Sent]] = {}
    for each in sent(path):
        found.setdefault(each[2].trace_id.hex(), []).append(each)
    return found


def read(trace_id: str, spans: Sequence[Sent]) -> Trace:
    pieces: list[bytes] = []
    for group, scope, span in spans:
        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add(resource=group.resource)
        resource.scope_spans.add(scope=scope.scope, spans=[span])
        pieces.append(request.SerializeToString())
    return read_trace(pieces, trace_id=trace_id, closed="root_ended")


@cache
def unchanged(path: Path, trace_id: str) -> dict[str, Any]:
    return words(read(trace_id, recorded(path)[trace_id]))


def words(trace: Trace) -> dict[str, Any]:
    calls = [(c.name, str(c.arguments), str(c.result), c.error) for c in trace.tool_calls]
    return {
        "turn": trace.is_turn,
        "input": trace.input,
        "output": trace.output,
        "tokens": (trace.tokens.input, trace.tokens.output),
        "calls": sorted(map(str, calls)),
        "offered": sorted(tool.name for tool in trace.tools_offered),
    }


# --- what another machine does ----------------------------------------------------------------------------------------


def a_client_span_below_every_span(spans: list[Sent]) -> list[Sent]:
    rng, made = random.Random(1), list[Sent]()
    for group, scope, span in spans:
        client = Span(
            trace_id=span.trace_id,
            span_id=rng.randbytes(8),
            parent_span_id=span.span_id,
            name="POST",
            kind=Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=span.start_time_unix_nano + 1,
            end_time_unix_nano=span.end_time_unix_nano,
        )
        client.attributes.add(key="http.request.method").value.string_value = "POST"
        http = ScopeSpans()
        http.scope.name = "opentelemetry.instrumentation.httpx"
        made += [(group, scope, span), (group, http, client)]
    return made


def a_parent_that_never_comes(spans: list[Sent]) -> list[Sent]:
    for _, _, span in spans:
        if not any(span.parent_span_id):
            span.parent_span_id, span.flags = b"elsewher", 0x301
    return spans


def tools_by_a_clock(seconds: int) -> Change:
    def change(spans: list[Sent]) -> list[Sent]:
        for _, _, span in spans:
            said = {(each.key, each.value.string_value) for each in span.attributes}
            if said & TOOLS:
                span.start_time_unix_nano += seconds * SECOND
                span.end_time_unix_nano += seconds * SECOND
        return spans

    return change


def whole_milliseconds(spans: list[Sent]) -> list[Sent]:
    for _, _, span in spans:
        span.start_time_unix_nano -= span.start_time_unix_nano % MILLISECOND
        span.end_time_unix_nano -= span.end_time_unix_nano % MILLISECOND
    return spans


CHANGES: dict[str, Change] = {
    "a client span below every span": a_client_span_below_every_span,
    "a parent that never comes": a_parent_that_never_comes,
    "tools 120 s behind": tools_by_a_clock(-120),
    "tools 4 s behind": tools_by_a_clock(-4),
    "tools 120 s ahead": tools_by_a_clock(120),
    "whole milliseconds": whole_milliseconds,
    "any order": lambda spans: random.Random(1).sample(spans, len(spans)),
    "twice": lambda spans: spans * 2,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_recording_says_the_same(change: Change) -> None:
    differing = {
        f"{path.parent.name}/{path.stem} {trace_id}": (before, after)
        for path in RECORDINGS
        for trace_id, spans in recorded(path).items()
        if (before := unchanged(path, trace_id)) and before["turn"]
        if (after := words(read(trace_id, change([_copy(each) for each in spans])))) != before
    }

    assert differing == {}


def _copy(of: Sent) -> Sent:
    span = Span()
    span.CopyFrom(of[2])
    return of[0], of[1], span


# --- a chat under one trace id ----------------------------------------------------------------------------------------
