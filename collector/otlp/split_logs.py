"""Splits requests whose spans may belong to made traces: of log records, and of the agents that send spans beside them.

What is made of them is a request of spans, and is split as one. A segment's record has its owner's key in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from collector.otlp.carried_logs import Carried, carry_logs
from collector.otlp.carried_spans import carry_spans, may_be_carried
from collector.otlp.segment import Segments
from collector.otlp.split import Piece, SplitRequest, joined_by_trace, split_by_trace


def split_logs(request: bytes, *, max_item: int, strict: bool = True) -> SplitRequest:
    """Split an ExportLogsServiceRequest; see `Split`."""
    carried = carry_logs(request)
    split = split_by_trace(carried.request, max_item=max_item, strict=strict)
    return _of_logs(_keyed(split, carried.segments), carried)


def joined_logs(request: bytes, *, max_item: int, joined: int, strict: bool = True) -> SplitRequest:
    """The same with joined records; see `SplitJoined`."""
    carried = carry_logs(request)
    split = joined_by_trace(carried.request, max_item=max_item, joined=joined, strict=strict)
    return _of_logs(_keyed(split, carried.segments), carried)


def split_traces(request: bytes, *, max_item: int, strict: bool = True) -> SplitRequest:
    """Split an ExportTraceServiceRequest; see `Split`."""
    return _of_traces(request, partial(split_by_trace, max_item=max_item, strict=strict))


def joined_traces(
    request: bytes, *, max_item: int, joined: int, strict: bool = True
) -> SplitRequest:
    """The same with joined records; see `SplitJoined`."""
    return _of_traces(
        request, partial(joined_by_trace, max_item=max_item, joined=joined, strict=strict)
    )


def _of_traces(request: bytes, split: Callable[[bytes], SplitRequest]) -> SplitRequest:
    """Split once, which is all for nearly every request; again where spans of made traces have moved."""
    sent = split(request)
    carried = carry_spans(request) if may_be_carried(sent.scopes) else None
    if carried is None:
        return sent
    return _as_sent(_keyed(split(carried[0]), carried[1]), request)


def _keyed(split: SplitRequest, segments: Segments) -> SplitRequest:
    if not segments:
        return split
    split.pieces = [
        Piece(segments[each.key].owner, each.value) if each.key in segments else each
        for each in split.pieces
    ]
    split.held = [
        held
        and msgspec.structs.replace(
            held,
            segments={each: segments[each] for each in held.traces if each in segments},
        )
        for held in split.held
    ]
    return split


def _of_logs(split: SplitRequest, carried: Carried) -> SplitRequest:
    """Counted in records: what was dropped was taken in."""
    split.accepted = carried.records - split.rejected
    split.add(carried.repaired)
    split.dropped = carried.dropped
    split.request = carried.repaired.request if carried.repaired.repaired else None
    return split


def _as_sent(split: SplitRequest, request: bytes) -> SplitRequest:
    if split.request is not None:
        split.request = request
    return split
