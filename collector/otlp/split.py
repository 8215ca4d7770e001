"""Splits a request into one piece per trace, without decoding attributes. Pure.

    request = resource [ scope [ span a1, span b1 ], scope [ span a2 ] ]
    pieces  = a: resource [ scope [ span a1 ], scope [ span a2 ] ]
              b: resource [ scope [ span b1 ] ]

Whatever stands in a resource or scope beside the spans is copied as it is, known or not.

Requests are walked field by field (`fields`). A walk in Python over the few fields around the spans, and one join per
trace, cost less than a parse in C that copies every span twice: memory traffic, not instructions, is what large spans
cost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.errors import TooLarge, Undecodable
from collector.otlp.repair import Decoded, repair
from collector.otlp.span_head import read_ids, trace_at, why_invalid
from collector.otlp.wire import Budget, fields, header

MAX_REASONS = 5
MAX_TRACES = 20_000
"""Of one request."""
LARGE_REQUEST = 4 << 20
"""Bytes above which a request is checked span by span: a parser's objects are 30 times an empty field's two bytes.

Batches of 512 spans, the SDKs' default, are mostly below it: to check them span by span costs as much as to store them.
"""
LARGE_SPAN = 64 << 10
"""Bytes above which the fields of a span count as fields of the request; a real large span has few."""
_NOT_A_REQUEST = "the body is not an ExportTraceServiceRequest"
_RESOURCE_SPANS = 0x0A  # field 1 of the request
_SCOPE_SPANS = 0x12  # field 2 of ResourceSpans
_SPAN = 0x12  # field 2 of ScopeSpans


class Piece(NamedTuple):
    """A record for the log: of traces, an ExportTraceServiceRequest with spans of one trace."""

    key: bytes
    """Of traces, the trace id."""
    value: bytes


class Group(NamedTuple):
    """Spans of one trace under one scope of one resource; every part with its own header."""

    resource: list[memoryview]
    """Everything in the resource but its scopes: the same list for all its groups."""
    scope: list[memoryview]
    """Everything in the scope but its spans."""
    spans: list[memoryview]


@dataclass(slots=True, kw_only=True)
class SplitRequest:
    """A request in pieces. `accepted + invalid + too_large` is the number of items (spans) that were sent."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    accepted: int = 0
    invalid: int = 0
    """Items that can never be accepted, of spans because of their ids."""
    too_large: int = 0
    """Items above the limit of a single one."""
    reasons: list[str] = field(default_factory=list[str])
    """Why the first few were rejected."""
    repaired: int = 0
    """Strings that were not Unicode and now are."""
    marked: int = 0
    """Texts in which secrets were marked."""
    whole: int = 0
    """Texts that became one marker, because looking at them would have cost too much."""
    request: bytes | None = None
    """The request as it was taken, where strings were repaired or spans left out; None: as it was sent."""

    @property
    def rejected(self) -> int:
        """Items that the sender must not send again."""
        return self.invalid + self.too_large

    def add(self, decoded: Decoded) -> None:
        """Count what was repaired and left out before the split."""
        self.repaired += decoded.repaired
        self.invalid += decoded.invalid
        self.marked += decoded.marked
        self.whole += decoded.whole
        self.reasons = [*decoded.reasons, *self.reasons][:MAX_REASONS]


def split_by_trace(request: bytes, *, max_item: int, strict: bool = True) -> SplitRequest:
    """Split a serialised ExportTraceServiceRequest.

    A request of one trace is not touched. A piece above `max_item` bytes becomes several pieces of the same trace.
    `strict` costs as much again as the split itself: strings that are not UTF-8 are repaired, and spans that no parser
    reads are rejected alone. Without it the inside of a span is first looked at when the trace is decoded.

    Raises:
        Undecodable: the request is not valid OTLP, outside of its spans if `strict`.
        TooLarge: it has more fields, spans or traces than one request may have.
    """
    if not strict:
        return _Splitter(request, max_item).split()
    split = None
    try:
        split = _Splitter(request, max_item).split()
        if len(request) <= LARGE_REQUEST:
            validate(request)
            return split
    except Undecodable:
        split = None
    try:
        repaired = repair(request)
    except Undecodable as error:
        raise Undecodable(_NOT_A_REQUEST) from error
    if split is not None and repaired.request is request:
        return split
    if len(repaired.request) <= LARGE_REQUEST:
        validate(repaired.request)
    split = _Splitter(repaired.request, max_item).split()
    split.request = repaired.request
    split.add(repaired)
    return split


def validate(request: bytes) -> None:
    """Parse the whole request, only to learn that it is valid.

    Raises:
        Undecodable: it is not.
    """
    try:
        ExportTraceServiceRequest.FromString(request)
    except DecodeError as error:
        raise Undecodable(_NOT_A_REQUEST) from error


class _Splitter:
    """One request being split."""

    def __init__(self, request: bytes, max_item: int) -> None:
        self._request = request
        self._view = memoryview(request)
        self._max_item = max_item
        self._traces: dict[bytes, list[Group]] = {}
        self._budget = Budget()
        self._split = SplitRequest()

    def split(self) -> SplitRequest:
        for tag, _, value, end in fields(self._request, 0, len(self._request), self._budget):
            if tag == _RESOURCE_SPANS:
                self._resource(value, end)
        split = self._split
        if len(self._traces) == 1 and not split.rejected and len(self._request) <= self._max_item:
            split.pieces.append(Piece(next(iter(self._traces)), self._request))
            return split
        for trace_id, groups in self._traces.items():
            for portion in _portions(groups, self._max_item):
                split.pieces.append(Piece(trace_id, _join(portion)))
        return split

    def _resource(self, position: int, end: int) -> None:
        around: list[memoryview] = []
        for tag, start, value, stop in fields(self._request, position, end, self._budget):
            if tag == _SCOPE_SPANS:
                self._scope(value, stop, around)
            else:
                around.append(self._view[start:stop])

    def _scope(self, position: int, end: int, resource: list[memoryview]) -> None:
        around: list[memoryview] = []
        by_trace: dict[bytes, list[memoryview]] = {}
        for tag, start, value, stop in fields(self._request, position, end, self._budget):
            if tag != _SPAN:
                around.append(self._view[start:stop])
                continue
            self._budget.add_span()
            trace_id = self._trace(value, stop)
            if trace_id is None:
                continue
            if trace_id in by_trace:
                by_trace[trace_id].append(self._view[start:stop])
            else:
                by_trace[trace_id] = [self._view[start:stop]]
        for trace_id, spans in by_trace.items():
            self._split.accepted += len(spans)
            self._traces.setdefault(trace_id, []).append(Group(resource, around, spans))
        if len(self._traces) > MAX_TRACES:
            raise TooLarge(
                f"the request has more than {MAX_TRACES} traces", items=self._budget.spans
            )

    def _trace(self, start: int, end: int) -> bytes | None:
        """The trace that takes this span; None: it was rejected."""
        if end - start > self._max_item:
            self._split.too_large += 1
            self._explain(f"a span has {end - start} bytes, more than {self._max_item}")
            return None
        if end - start > LARGE_SPAN:
            deque(fields(self._request, start, end, self._budget), maxlen=0)
        trace_id = trace_at(self._request, start, end)
        if trace_id is not None:
            return trace_id
        trace_id, span_id = read_ids(self._request[start:end])
        reason = why_invalid(trace_id, span_id)
        if reason is None:
            return trace_id
        self._split.invalid += 1
        self._explain(reason)
        return None

    def _explain(self, reason: str) -> None:
        if len(self._split.reasons) < MAX_REASONS:
            self._split.reasons.append(reason)


def _portions(groups: list[Group], limit: int) -> Iterator[list[Group]]:
    """All of it in one portion where that stays within the limit; else as few as keep to it, one span at least."""
    portion: list[Group] = []
    size = 0
    for group in groups:
        spans: list[memoryview] = []
        for span in group.spans:
            if size and size + len(span) > limit:
                if spans:
                    portion.append(group._replace(spans=spans))
                yield portion
                portion, spans, size = [], [], 0
            spans.append(span)
            size += len(span)
        portion.append(group._replace(spans=spans))
    yield portion


def _join(groups: list[Group]) -> bytes:
    parts: list[bytes | memoryview] = []
    for resource, scopes in _by_resource(groups):
        inside: list[bytes | memoryview] = [*resource]
        for group in scopes:
            inside.append(header(_SCOPE_SPANS, _size(group.scope) + _size(group.spans)))
            inside += group.scope
            inside += group.spans
        parts.append(header(_RESOURCE_SPANS, _size(inside)))
        parts += inside
    return b"".join(parts)


def _by_resource(groups: list[Group]) -> Iterator[tuple[list[memoryview], list[Group]]]:
    first = 0
    for number, group in enumerate(groups):
        if group.resource is not groups[first].resource:
            yield groups[first].resource, groups[first:number]
            first = number
    yield groups[first].resource, groups[first:]


def _size(parts: list[memoryview] | list[bytes | memoryview]) -> int:
    return sum(map(len, parts))
