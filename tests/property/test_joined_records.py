"""One record per request: the pieces of a request joined, and what its receiver says of it without being asked."""

import asyncio
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.log.port import SPANS, Position
from collector.otlp.scan import Scan, scan
from collector.otlp.split import joined_by_trace, split_by_trace
from collector.records.scan_cache import ScanCache
from tests.property.test_receiver import MAX_SPAN, grouped
from tests.support.assembling import Site
from tests.support.examples import examples
from tests.support.spans import Made, child, remote, request, root

LARGE = 1 << 20
steady = settings(
    deadline=None, max_examples=examples(80), suppress_health_check=[HealthCheck.too_slow]
)


def said(held: Scan) -> tuple[list[Any], Mapping[bytes, list[bytes]], Mapping[bytes, Any], int]:
    resources = {key: list(parts) for key, parts in held.resources.items()}
    return list(held.traces.items()), resources, held.ranges, held.invalid


@steady
@given(grouped(valid=False), st.sampled_from([1, 300, 1000, LARGE]))
def test_a_joined_record_is_the_pieces_one_after_the_other(
    sent: ExportTraceServiceRequest, joined: int
) -> None:
    whole = sent.SerializeToString()
    pieces = split_by_trace(whole, max_item=LARGE).pieces

    split = joined_by_trace(whole, max_item=LARGE, joined=joined)

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
def test_what_is_said_of_a_record_is_what_a_scan_reads(
    sent: ExportTraceServiceRequest, joined: int, max_item: int
) -> None:
    whole = sent.SerializeToString()

    split = joined_by_trace(whole, max_item=max_item, joined=joined)

    assert len(split.held) == len(split.pieces)
    for record, held in zip(split.pieces, split.held, strict=True):
        if held is None:  # one of several pieces of a trace that is too large for one
            assert max_item == MAX_SPAN
            assert len(scan(record.value).traces) == 1
        else:
            assert said(held) == said(scan(record.value))
    counted = split_by_trace(whole, max_item=max_item)
    assert (split.accepted, split.invalid, split.too_large) == (
        counted.accepted,
        counted.invalid,
        counted.too_large,
    )


@st.composite
def sent_spans(draw: st.DrawFn) -> list[tuple[float, tuple[Made, ...]]]:
    """Requests with spans of several traces, at log times."""
    requests: list[tuple[float, tuple[Made, ...]]] = []
    time = 100.0
    for _ in range(draw(st.integers(1, 8))):
        time += draw(st.sampled_from([0, 1, 6.1, 40, 301]))
        spans: list[Made] = []
        for _ in range(draw(st.integers(1, 6))):
            trace, number = draw(st.integers(1, 5)), draw(st.integers(1, 5))
            special = {1: root(trace), 2: remote(2, 77, trace=trace)}
            spans.append(special.get(number) or child(number, trace=trace))
        requests.append((time, tuple(spans)))
    return requests


async def remaining(site: Site) -> list[Position]:
    return [each.position async for each in site.log.replay(SPANS, 0)]


def assembled(
    requests: list[tuple[float, tuple[Made, ...]]], known: list[bool]
) -> tuple[list[tuple[bytes, bytes]], list[Position]]:
    """The records of traces that come out, and those of spans that are left; `known`: of which record."""
    site = Site(scans=ScanCache())
    for number, (time, spans) in enumerate(requests):
        split = joined_by_trace(request(*spans), max_item=LARGE, joined=LARGE)
        site.clock.now = time
        (record,), (held,) = split.pieces, split.held
        position = site.log.append(SPANS, record.value)
        assert held is not None
        assert site.scans is not None
        if known[number % len(known)]:
            site.scans.put(position, held)
    asyncio.run(site.once(10_000))
    left = asyncio.run(remaining(site))
    return [(each.key, each.value) for each in site.log.history("traces")], left


@steady
@given(sent_spans(), st.lists(st.booleans(), min_size=1, max_size=8))
def test_what_is_lost_of_the_hand_over_changes_nothing(
    requests: list[tuple[float, tuple[Made, ...]]], known: list[bool]
) -> None:
    assert assembled(requests, known) == assembled(requests, [False])
