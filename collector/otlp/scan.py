"""What a record of `spans` holds: the heads of its spans by trace, and where each trace's piece is. Pure.

record = one request, or the pieces of one request joined: [a: resource [..]] [b: resource [..]]
ranges = a -> (0, 1200), b -> (1200, 1900)
"""

from collections.abc import Sequence

import msgspec

from collector.base.errors import TooLarge, Undecodable
from collector.otlp.segment import Segments, segment_of
from collector.otlp.span_head import SpanHead, head, head_at, parse
from collector.otlp.wire import RequestBudget, fields

Range = tuple[int, int]  # from, and below
_MARK = b"langfuse.internal."
_ROOT_MARKS = tuple(_MARK + name + b"\x12\x02\x10\x01" for name in (b"as_root", b"is_app_root"))
"""The attribute's key, then its value, fields 2 of KeyValue and of AnyValue: true."""
_RESOURCE_SPANS = 0x0A  # field 1 of the request


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    traces: dict[bytes, list[SpanHead]]
    """The valid spans by trace id, in the order of the record. Usually several."""
    resources: dict[bytes, Sequence[bytes]]
    """The raw resource of each trace's first span, perhaps in several parts."""
    ranges: dict[bytes, Range | None]
    """By trace id, the bytes of the record that are its spans and nothing else, a request of their own; None: they
    are not together."""
    segments: Segments = {}  # of `traces`, those that are segments of made traces
    invalid: int  # undecodable spans, and spans whose trace id or span id is missing, zero or of the wrong length


def scan(value: bytes) -> Scan:
    """Read the heads of all spans in a record. A span that its SDK marks as the root has no parent, whoever it names.

    Raises Undecodable: not an ExportTraceServiceRequest.
    """
    traces: dict[bytes, list[SpanHead]] = {}
    resources: dict[bytes, Sequence[bytes]] = {}
    segments = Segments()
    holders: list[bytes | None] = []
    mixed: set[bytes | None] = set()
    invalid = 0
    has_marks = _is_marked(value)
    for resource in parse(value).resource_spans:
        seen: set[bytes | None] = set()
        for scope in resource.scope_spans:
            for raw in scope.spans:
                span = head_at(raw, 0, len(raw)) or valid_head(raw)
                if span is None:
                    invalid += 1
                    seen.add(None)
                    continue
                if has_marks and _is_marked(raw):
                    span = span._replace(parent_span_id=b"")
                trace_id = span.trace_id
                seen.add(trace_id)
                if (spans := traces.get(trace_id)) is not None:
                    spans.append(span)
                else:
                    traces[trace_id] = [span]
                    resources[trace_id] = resource.resource
                    if (segment := segment_of(raw)) is not None:
                        segments[trace_id] = segment
        if len(seen) > 1:
            mixed |= seen
        holders.append(seen.pop() if len(seen) == 1 else None)
    if len(traces) == 1 and not invalid:
        ranges: dict[bytes, Range | None] = dict.fromkeys(traces, (0, len(value)))
    else:
        alone = _ranges(value, holders)
        ranges = {each: None if each in mixed else alone.get(each) for each in traces}
    return Scan(
        traces=traces, resources=resources, ranges=ranges, segments=segments, invalid=invalid
    )


def _is_marked(raw: bytes) -> bool:
    """Whether Langfuse's SDK marks a root in these bytes: the parent of that span goes elsewhere, or nowhere."""
    return _MARK in raw and any(mark in raw for mark in _ROOT_MARKS)


def valid_head(raw: bytes) -> SpanHead | None:
    """Where a raw span belongs; None: it is not a span, or its ids are not valid."""
    try:
        span = head(raw)
    except Undecodable:
        return None
    return span if span.is_valid else None


def _ranges(value: bytes, holders: Sequence[bytes | None]) -> dict[bytes, Range | None]:
    """Where the ResourceSpans of each trace are; `holders` says which trace has each alone, None: none has."""
    try:
        walk = fields(value, 0, len(value), RequestBudget())
        stand = [(start, end) for tag, start, _, end in walk if tag == _RESOURCE_SPANS]
    except (TooLarge, Undecodable):  # groups, which a parser skips and `fields` does not read
        return {}
    if len(stand) != len(holders):
        return {}
    ranges: dict[bytes, Range | None] = {}
    for holder, (start, end) in zip(holders, stand, strict=True):
        if holder is None:
            continue
        before = ranges.get(holder, (start, start))
        ranges[holder] = (before[0], end) if before is not None and before[1] == start else None
    return ranges
