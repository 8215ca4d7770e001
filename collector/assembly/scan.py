"""A record of `spans` as assembly sees it: which spans of which traces it holds, without decoding an attribute."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from collector.errors import Undecodable
from collector.otlp.span_head import SpanHead, cut, head, parse, start_time_unix_nano

NAME = 128
"""Characters of a service's name that are looked at, as many as the name of a read trace has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What one record holds."""

    traces: dict[bytes, list[SpanHead]]
    """The valid spans by trace id, in the order of the record. Usually one trace; a stock Collector may send more."""
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
    invalid = 0
    for resource in parse(value).resource_spans:
        for scope in resource.scope_spans:
            for raw in scope.spans:
                span = _valid(raw)
                if span is None:
                    invalid += 1
                else:
                    traces.setdefault(span.trace_id, []).append(span)
    return Scan(traces=traces, invalid=invalid)


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


def service_name(piece: bytes) -> str:
    """The service that the piece's first resource names; empty: it names none, or cannot be decoded.

    Whose worker time its trace uses. The trace itself may name another: the one of its root's resource.
    """
    try:
        for resource in parse(piece).resource_spans:
            for raw in resource.resource:
                for attribute in Resource.FromString(raw).attributes:
                    if attribute.key == "service.name":
                        return attribute.value.string_value[:NAME]
    except (Undecodable, DecodeError):
        return ""
    return ""


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
