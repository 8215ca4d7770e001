"""What assembly asks of the raw spans of a record, without decoding their attributes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.log.port import Record
from collector.otlp.scan import Scan, scan, valid_head
from collector.otlp.span_head import SpanHead, cut, parse, start_time_unix_nano
from collector.records.span_refs import Piece, SpanRef
from evaluators.dialects.decoding.decode import EVALUATION_NAME

MAX_RESOURCE = 64 << 10  # bytes of a resource that is decoded for its name
_SCORE = b".evaluation.name"
"""Every span that is a score has it."""
CACHED_RESOURCE = 4 << 10
"""Bytes of a resource that is remembered with its name: a process sends the same one again and again."""
MAX_NAME = 128  # characters of a service's name, as wherever a trace is read


def service_of(resource: Sequence[bytes]) -> str:
    """`service.name` of a raw resource; empty where it has none, is above MAX_RESOURCE or cannot be decoded.

    Whose memory and worker time its trace uses. The trace itself may name another: the one of its root's resource.
    """
    raw = resource[0] if len(resource) == 1 else b"".join(resource)
    if len(raw) <= CACHED_RESOURCE:
        return _remembered_service(raw)
    return _service(raw) if len(raw) <= MAX_RESOURCE else ""


@lru_cache(maxsize=512)
def _remembered_service(raw: bytes) -> str:
    return _service(raw)


def _service(raw: bytes) -> str:
    try:
        attributes = Resource.FromString(raw).attributes
    except DecodeError:
        return ""
    names = (each.value.string_value for each in attributes if each.key == "service.name")
    return next(names, "")[:MAX_NAME]


def piece_of(
    record: Record, held: Scan, trace_id: bytes, new: Sequence[SpanHead], *, by_ref: bool
) -> Piece:
    """The trace's part of a record when all of its spans there are `new`, else cut down to those that are.

    `new`: spans that the trace does not have yet. `by_ref`: whether to say where the part is; what was cut is nowhere.
    """
    stands = held.ranges[trace_id] if len(new) == len(held.traces[trace_id]) else None
    if stands is None:
        return only(record.value, trace_id, [span.span_id for span in new])
    start, end = stands
    if by_ref:
        return SpanRef(record.position.partition, record.position.offset, start, end)
    return record.value[start:end]


def only(value: bytes, trace_id: bytes | None, span_ids: Collection[bytes]) -> bytes:
    """The record cut down to these spans of this trace (None: of any), the first copy of each.

    Raises Undecodable: as `scan`.
    """
    remaining = set(span_ids)

    def keep(raw: bytes) -> bool:
        span = valid_head(raw)
        if span is None or span.span_id not in remaining:
            return False
        if trace_id is not None and span.trace_id != trace_id:
            return False
        remaining.discard(span.span_id)
        return True

    return cut(value, keep)


def scores_in(value: bytes) -> Mapping[bytes, Collection[bytes]]:
    """By trace, the spans that are scores of another one in it: of GenAI's convention or OpenInference's.

    Raises Undecodable: as `scan`.
    """
    found: defaultdict[bytes, set[bytes]] = defaultdict(set)
    if _SCORE not in value:
        return found
    for resource in parse(value).resource_spans:
        for raw in (raw for scope in resource.scope_spans for raw in scope.spans if _SCORE in raw):
            head = valid_head(raw)
            if head is not None and head.parent_span_id and _is_score(raw):
                found[head.trace_id].add(head.span_id)
    return found


def _is_score(raw: bytes) -> bool:
    try:
        keys = [each.key for each in Span.FromString(raw).attributes]
    except DecodeError:
        return False
    return any(key == EVALUATION_NAME or key.startswith("evaluations.") for key in keys)


def without_scores(spans: Sequence[SpanHead], scores: Collection[bytes]) -> list[SpanHead]:
    """Without these spans and what was done for them: a judge's calls are below its score."""
    below: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for each in spans:
        below[each.parent_span_id].append(each.span_id)
    gone: set[bytes] = set()
    left = [*scores]
    while left:
        if (one := left.pop()) not in gone:
            gone.add(one)
            left += below[one]
    return [each for each in spans if each.span_id not in gone]


def span_ids(pieces: Sequence[bytes]) -> set[bytes]:
    """The ids of all valid spans in the pieces of one trace. Raises Undecodable: as `scan`."""
    return {
        span.span_id for piece in pieces for spans in scan(piece).traces.values() for span in spans
    }


def first_start(pieces: Sequence[bytes]) -> int:
    """When the earliest span in the pieces of one trace began, unix nanoseconds; 0: a span cannot be decoded."""
    try:
        return min(
            start_time_unix_nano(span)
            for piece in pieces
            for resource in parse(piece).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        )
    except Undecodable:
        return 0
