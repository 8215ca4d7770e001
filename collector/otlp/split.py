"""Splits a request into one piece per trace, without decoding attributes. Pure.

    request = resource [ scope [ span a1, span b1 ], scope [ span a2 ] ]
    pieces  = a: resource [ scope [ span a1 ], scope [ span a2 ] ]
              b: resource [ scope [ span b1 ] ]

Whatever is in a resource or scope beside the spans is copied as it is, known or not.

A piece is a record of the log; where the log has one partition, all pieces are one record, one after the other
(`joined_by_trace`), with what `scan` would read of it: the walk has seen the spans' heads already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import Undecodable
from collector.otlp.repair import DecodedRequest, repair
from collector.otlp.scan import Range, Scan
from collector.otlp.span_head import SpanHead
from collector.otlp.walk import MAX_REASONS, Parts, RequestTrace, Walk

LARGE_REQUEST = 4 << 20
"""Bytes above which a request is checked span by span: a parser's objects are 30 times an empty field's two bytes.

Batches of 512 spans, the SDKs' default, are mostly below it: to check them span by span costs as much as to store them.
"""
_NOT_A_REQUEST = "the body is not an ExportTraceServiceRequest"


class Piece(NamedTuple):
    """A record for the log: of traces, an ExportTraceServiceRequest with spans of one trace, or several such joined."""

    key: bytes  # of traces, the (first) trace id
    value: bytes


@dataclass(slots=True, kw_only=True)
class SplitRequest:
    """A request in pieces. `accepted + invalid + too_large` is the number of items (spans) that were sent."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    held: list[Scan | None] = field(default_factory=list[Scan | None])
    """What `scan` reads of each piece, where that is known; or nothing of any."""
    accepted: int = 0
    invalid: int = 0  # items that can never be accepted, of spans because of their ids
    too_large: int = 0  # items above the limit of a single one
    reasons: list[str] = field(default_factory=list[str])  # why the first few were rejected
    repaired: int = 0  # strings that were not Unicode and now are
    marked: int = 0  # texts in which secrets were marked
    whole: int = 0  # texts that became one marker, because looking at them would have cost too much
    dropped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Items that were accepted and are not worth a record, by reason."""
    unread: Collection[int] = ()  # the places of these items in the request
    scopes: Sequence[memoryview] = ()  # what is beside the spans in their scopes, undecoded
    request: bytes | None = None
    """The request as it was taken, where strings were repaired or spans left out; None: as it was sent."""

    @property
    def rejected(self) -> int:
        return self.invalid + self.too_large

    def add(self, decoded: DecodedRequest) -> None:
        self.repaired += decoded.repaired
        self.invalid += decoded.invalid
        self.marked += decoded.marked
        self.whole += decoded.whole
        self.reasons = [*decoded.reasons, *self.reasons][:MAX_REASONS]


Cut: TypeAlias = Callable[[bytes, Walk, SplitRequest], None]
"""Adds the records of a request that has been walked."""


def split_by_trace(request: bytes, *, max_item: int, strict: bool = True) -> SplitRequest:
    """Split a serialised ExportTraceServiceRequest.

    A request of one trace is not touched. A piece above `max_item` bytes becomes several pieces of the same trace.
    `strict` costs as much again as the split itself: strings that are not UTF-8 are repaired, and spans that no parser
    reads are rejected alone. Without it the inside of a span is first looked at when the trace is decoded. Raises
    Undecodable: the request is not valid OTLP, outside of its spans if `strict`. Raises TooLarge: it has more fields,
    spans or traces than one request may have.
    """

    def pieces(of: bytes, walk: Walk, split: SplitRequest) -> None:
        for trace_id, trace in walk.traces.items():
            parts = [[of]] if walk.is_whole else [each.parts for each in walk.pieces(trace)]
            split.pieces += [Piece(trace_id, b"".join(each)) for each in parts]

    return _checked(request, max_item, pieces, strict=strict)


def joined_by_trace(
    request: bytes, *, max_item: int, joined: int, strict: bool = True
) -> SplitRequest:
    """As `split_by_trace`, with the pieces joined to records of at most `joined` bytes, or of one piece.

    A trace that is cut into several pieces has each of them in a record of its own. A record says what it holds, but
    not where a parser might read a span in another way, nor of a large request or without `strict`.
    """

    def records(of: bytes, walk: Walk, split: SplitRequest) -> None:
        says = strict and walk.is_known and len(of) <= LARGE_REQUEST
        records = _whole(of, walk) if walk.is_whole else _records(walk, joined)
        for piece, held in records:
            split.pieces.append(piece)
            split.held.append(held if says else None)

    return _checked(request, max_item, records, strict=strict)


def _checked(request: bytes, max_item: int, cut: Cut, *, strict: bool) -> SplitRequest:
    if not strict:
        return _split(request, max_item, cut)
    split = None
    try:
        split = _split(request, max_item, cut)
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
    split = _split(repaired.request, max_item, cut)
    split.request = repaired.request
    split.add(repaired)
    return split


def _split(request: bytes, max_item: int, cut: Cut) -> SplitRequest:
    walk = Walk(request, max_item)
    split = SplitRequest(
        accepted=walk.accepted,
        invalid=walk.invalid,
        too_large=walk.too_large,
        reasons=walk.reasons,
        scopes=walk.scopes,
    )
    cut(request, walk, split)
    return split


def validate(request: bytes) -> None:
    """Parse the whole request, only to learn that it is valid. Raises Undecodable: it is not."""
    try:
        ExportTraceServiceRequest.FromString(request)
    except DecodeError as error:
        raise Undecodable(_NOT_A_REQUEST) from error


def _whole(request: bytes, walk: Walk) -> list[tuple[Piece, Scan]]:
    """The one record of a request of one trace: its own bytes."""
    ((trace_id, trace),) = walk.traces.items()
    held = Scan(
        traces={trace_id: trace.heads},
        resources={trace_id: trace.groups[0].resource.raw},
        ranges={trace_id: (0, len(request))},
        invalid=0,
    )
    return [(Piece(trace_id, request), held)]


def _records(walk: Walk, joined: int) -> Iterator[tuple[Piece, Scan | None]]:
    record = _Record()
    for trace_id, trace in walk.traces.items():
        whole = walk.pieces(trace)
        if len(whole) > 1:
            yield from ((Piece(trace_id, b"".join(each.parts)), None) for each in whole)
            continue
        if record.size and record.size + whole[0].size > joined:
            yield record.whole()
            record = _Record()
        record.add(trace_id, trace, whole[0])
    if record.size:
        yield record.whole()


class _Record:
    def __init__(self) -> None:
        self.size = 0
        self._parts: list[bytes | memoryview] = []
        self._traces: dict[bytes, list[SpanHead]] = {}
        self._resources: dict[bytes, Sequence[bytes]] = {}
        self._ranges: dict[bytes, Range | None] = {}

    def add(self, trace_id: bytes, trace: RequestTrace, piece: Parts) -> None:
        parts, size = piece
        self._parts += parts
        self._traces[trace_id] = trace.heads
        self._resources[trace_id] = trace.groups[0].resource.raw
        self._ranges[trace_id] = (self.size, self.size + size)
        self.size += size

    def whole(self) -> tuple[Piece, Scan]:
        held = Scan(traces=self._traces, resources=self._resources, ranges=self._ranges, invalid=0)
        return Piece(next(iter(self._traces)), b"".join(self._parts)), held
