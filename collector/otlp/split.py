"""Splits a request into one piece per trace, without decoding attributes. Pure.

    request = resource [ scope [ span a1, span b1 ], scope [ span a2 ] ]
    pieces  = a: resource [ scope [ span a1 ], scope [ span a2 ] ]
              b: resource [ scope [ span b1 ] ]

Whatever is in a resource or scope beside the spans is copied as it is, known or not.

A piece is a record of the log; where the log has one partition, all pieces are one record, one after the other.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.base.errors import Undecodable
from collector.otlp.repair import DecodedRequest, repair
from collector.otlp.walk import MAX_REASONS, Walk

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


def split_by_trace(request: bytes, *, max_item: int, joined: int = 0) -> SplitRequest:
    """Split a serialised ExportTraceServiceRequest.

    A request of one trace is not touched. A piece above `max_item` bytes becomes several pieces of the same trace, each
    a record of its own; others are joined to records of at most `joined` bytes, or of one piece. Strings that are not
    UTF-8 are repaired, and spans that no parser reads are rejected alone: that costs as much again as the split itself.
    Raises Undecodable: the request is not valid OTLP. Raises TooLarge: it has more fields, spans or traces than one
    request may have.
    """
    split = None
    try:
        split = _split(request, max_item, joined)
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
    split = _split(repaired.request, max_item, joined)
    split.request = repaired.request
    split.add(repaired)
    return split


def _split(request: bytes, max_item: int, joined: int) -> SplitRequest:
    walk = Walk(request, max_item)
    return SplitRequest(
        pieces=[Piece(next(iter(walk.traces)), request)]
        if walk.is_whole
        else [*_records(walk, joined)],
        accepted=walk.accepted,
        invalid=walk.invalid,
        too_large=walk.too_large,
        reasons=walk.reasons,
        scopes=walk.scopes,
    )


def validate(request: bytes) -> None:
    """Parse the whole request, only to learn that it is valid. Raises Undecodable: it is not."""
    try:
        ExportTraceServiceRequest.FromString(request)
    except DecodeError as error:
        raise Undecodable(_NOT_A_REQUEST) from error


def _records(walk: Walk, joined: int) -> Iterator[Piece]:
    key, parts, size = b"", list[bytes | memoryview](), 0
    for trace_id, trace in walk.traces.items():
        whole = walk.pieces(trace)
        if len(whole) > 1:
            yield from (Piece(trace_id, b"".join(each.parts)) for each in whole)
            continue
        if size and size + whole[0].size > joined:
            yield Piece(key, b"".join(parts))
            parts, size = [], 0
        key = key if size else trace_id
        parts += whole[0].parts
        size += whole[0].size
    if size:
        yield Piece(key, b"".join(parts))
