"""One walk over a request of traces: which spans belong to which trace, and where they are. Nothing is copied.

Requests are walked field by field (`fields`). A walk in Python over the few fields around the spans, and one join per
record, cost less than a parse in C that copies every span twice: memory traffic, not instructions, is what large spans
cost.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from collector.base.errors import TooLarge
from collector.otlp.span_head import read_ids, trace_at, why_invalid
from collector.otlp.wire import RequestBudget, fields, header

MAX_REASONS = 5
MAX_TRACES = 20_000
"""Of one request."""
LARGE_SPAN = 64 << 10
"""Bytes above which the fields of a span count as fields of the request; a real large span has few."""
_RESOURCE_SPANS = 0x0A  # field 1 of the request
_SCOPE_SPANS = 0x12  # field 2 of ResourceSpans
_SPAN = 0x12  # field 2 of ScopeSpans


def trace_ids(request: bytes) -> Iterator[bytes]:
    """The trace id of each span that has it at its place, as far as the request can be walked.

    Nothing of a request that is compressed or JSON: neither begins as a request in protobuf does. Raises Undecodable:
    it cannot be walked any further.
    """
    if request[:1] != b"\x0a":
        return
    budget = RequestBudget()
    for tag, _, position, end in fields(request, 0, len(request), budget):
        if tag != _RESOURCE_SPANS:
            continue
        for inner, _, start, stop in fields(request, position, end, budget):
            if inner != _SCOPE_SPANS:
                continue
            for kind, _, value, below in fields(request, start, stop, budget):
                trace_id = trace_at(request, value, below) if kind == _SPAN else None
                if trace_id is not None:
                    yield trace_id


class SpanGroup(NamedTuple):
    """Spans of one trace under one scope of one resource."""

    # Everything in the resource but its scopes, and in the scope but its spans, every part with its own header.
    resource: list[memoryview]
    scope: list[memoryview]
    runs: list[int]
    """Of spans that follow one another in the request, with their headers: from, and below, of each run."""


class Parts(NamedTuple):
    """What a piece consists of, in order, and its bytes."""

    parts: list[bytes | memoryview]
    size: int


class Walk:
    """A request that has been walked.

    `max_item`: the largest span; also of a piece, where it has several spans. Raises Undecodable: it is not valid OTLP
    outside of its spans, or a span without ids at their places is not a message. Raises TooLarge: it has more fields,
    spans or traces than one request may have.
    """

    def __init__(self, request: bytes, max_item: int) -> None:
        self.traces: dict[bytes, list[SpanGroup]] = {}  # by trace id, in the order of the request
        self.accepted = 0
        self.invalid = 0
        self.too_large = 0
        self.reasons: list[str] = []  # why the first few were rejected
        self.scopes: list[memoryview] = []
        """What is beside the spans in their scopes: the names of instrumentations, undecoded."""
        self._request = request
        self._view = memoryview(request)
        self._max_item = max_item
        self._is_small = len(request) <= max_item
        """No piece can be above `max_item`: spans that follow one another stay together."""
        self._budget = RequestBudget()
        for tag, _, value, end in fields(request, 0, len(request), self._budget):
            if tag == _RESOURCE_SPANS:
                self._resource(value, end)

    @property
    def is_whole(self) -> bool:
        return len(self.traces) == 1 and self._is_small and not self.invalid and not self.too_large

    def pieces(self, trace: list[SpanGroup]) -> list[Parts]:
        if self._is_small:
            return [self._parts(trace)]
        return [self._parts(each) for each in _portions(trace, self._max_item)]

    def _resource(self, position: int, end: int) -> None:
        resource: list[memoryview] = []
        for tag, start, value, stop in fields(self._request, position, end, self._budget):
            if tag == _SCOPE_SPANS:
                self._scope(value, stop, resource)
            else:
                resource.append(self._view[start:stop])

    def _scope(self, position: int, end: int, resource: list[memoryview]) -> None:
        request, budget, is_small = self._request, self._budget, self._is_small
        usual = min(LARGE_SPAN, self._max_item)
        around: list[memoryview] = []
        by_trace: dict[bytes, list[int]] = {}  # the runs of each group
        for tag, start, value, stop in fields(request, position, end, budget):
            if tag != _SPAN:
                around.append(self._view[start:stop])
                continue
            budget.add_span()
            trace_id = trace_at(request, value, stop) if stop - value <= usual else None
            if trace_id is None:
                trace_id = self._look_closer(value, stop)
                if trace_id is None:
                    continue
            self.accepted += 1
            runs = by_trace.get(trace_id)
            if runs is None:
                runs = by_trace[trace_id] = []
                self.traces.setdefault(trace_id, []).append(SpanGroup(resource, around, runs))
            if is_small and runs and runs[-1] == start:
                runs[-1] = stop
            else:
                runs += (start, stop)
        self.scopes += around
        if len(self.traces) > MAX_TRACES:
            raise TooLarge(f"the request has more than {MAX_TRACES} traces", items=budget.spans)

    def _look_closer(self, start: int, end: int) -> bytes | None:
        """The trace of a span that is large or whose ids are not at their places; None: it was rejected."""
        if end - start > self._max_item:
            self.too_large += 1
            self._explain(f"a span has {end - start} bytes, more than {self._max_item}")
            return None
        if end - start > LARGE_SPAN:
            deque(fields(self._request, start, end, self._budget), maxlen=0)
        raw = self._request[start:end]
        trace_id = trace_at(raw, 0, len(raw))
        if trace_id is None:
            trace_id, span_id = read_ids(raw)
            reason = why_invalid(trace_id, span_id)
            if reason is not None:
                self.invalid += 1
                self._explain(reason)
                return None
        return trace_id

    def _explain(self, reason: str) -> None:
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(reason)

    def _parts(self, groups: list[SpanGroup]) -> Parts:
        view = self._view
        parts: list[bytes | memoryview] = []
        whole = 0
        for resource, scopes in _by_resource(groups):
            inside: list[bytes | memoryview] = [*resource]
            size = _size(inside)
            for _, scope, runs in scopes:
                of_scope = _size(scope) + sum(runs[1::2]) - sum(runs[::2])
                before = header(_SCOPE_SPANS, of_scope)
                size += len(before) + of_scope
                inside.append(before)
                inside += scope
                inside += [view[start:end] for start, end in _pairs(runs)]
            before = header(_RESOURCE_SPANS, size)
            whole += len(before) + size
            parts.append(before)
            parts += inside
        return Parts(parts, whole)


def _pairs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    each = iter(numbers)
    return zip(each, each, strict=True)


def _portions(groups: list[SpanGroup], limit: int) -> Iterator[list[SpanGroup]]:
    portion: list[SpanGroup] = []
    size = 0
    for group in groups:
        runs: list[int] = []
        for start, end in _pairs(group.runs):
            if size and size + end - start > limit:
                if runs:
                    portion.append(group._replace(runs=runs))
                yield portion
                portion, runs, size = [], [], 0
            runs += (start, end)
            size += end - start
        portion.append(group._replace(runs=runs))
    yield portion


def _by_resource(
    groups: list[SpanGroup],
) -> Iterator[tuple[list[memoryview], list[SpanGroup]]]:
    if len(groups) == 1:
        yield groups[0].resource, groups
        return
    first = 0
    for number, group in enumerate(groups):
        if group.resource is not groups[first].resource:
            yield groups[first].resource, groups[first:number]
            first = number
    yield groups[first].resource, groups[first:]


def _size(parts: Sequence[bytes | memoryview]) -> int:
    return sum(map(len, parts))
