"""A record of `spans` as assembly sees it: which spans of which traces it holds, without decoding an attribute."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from collector.errors import Undecodable
from collector.otlp.span_head import SpanHead, cut, head, parse, start_time_unix_nano

MAX_RESOURCE = 64 << 10
"""Bytes of a resource that is decoded for its name."""
CACHED_RESOURCE = 4 << 10
"""Bytes of a resource that is remembered with its name: a process sends the same one again and again."""
MAX_NAME = 128
"""Characters of a service's name, as wherever a trace is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What one record holds."""

    traces: dict[bytes, list[SpanHead]]
    """The valid spans by trace id, in the order of the record. Usually one trace; a stock Collector may send more."""
    resources: dict[bytes, Sequence[bytes]]
    """The raw resource of each trace's first span, perhaps in several parts."""
    invalid: int
    """Undecodable spans, and spans whose trace id or span id is missing, zero or of the wrong length."""

    @property
    def is_clean(self) -> bool:
        """Whether the record holds valid spans of one trace and nothing else."""
        return len(self.traces) == 1 and not self.invalid


def scan(value: bytes) -> Scan:
    """Read the heads of all spans in a record.

    Raises:
        Undecodable: not an ExportTraceServiceRequest.
    """
    traces: dict[bytes, list[SpanHead]] = {}
    resources: dict[bytes, Sequence[bytes]] = {}
    invalid = 0
    for resource in parse(value).resource_spans:
        for scope in resource.scope_spans:
            for raw in scope.spans:
                span = _valid(raw)
                if span is None:
                    invalid += 1
                elif (spans := traces.get(span.trace_id)) is not None:
                    spans.append(span)
                else:
                    traces[span.trace_id] = [span]
                    resources[span.trace_id] = resource.resource
    return Scan(traces=traces, resources=resources, invalid=invalid)


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


def only(value: bytes, trace_id: bytes, span_ids: Collection[bytes]) -> bytes:
    """The record cut down to these spans of this trace, the first copy of each.

    Raises:
        Undecodable: as `scan`.
    """
    remaining = set(span_ids)

    def keep(raw: bytes) -> bool:
        span = _valid(raw)
        if span is None or span.trace_id != trace_id or span.span_id not in remaining:
            return False
        remaining.discard(span.span_id)
        return True

    return cut(value, keep)


def _valid(raw: bytes) -> SpanHead | None:
    try:
        span = head(raw)
    except Undecodable:
        return None
    return span if span.is_valid else None


def span_ids(pieces: Sequence[bytes]) -> set[bytes]:
    """The ids of all valid spans in the pieces of one trace.

    Raises:
        Undecodable: as `scan`.
    """
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
