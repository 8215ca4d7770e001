"""The trace in which an agent sent a turn, of a trace that the owner of its session made. Pure.

Claude Code sends a trace for each turn beside its log records: the span of the turn is its root. Where a caller has a
trace (`TRACEPARENT`), that span has a parent, and several turns may share the caller's trace: that names none of them.
"""

from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.otlp.segment import segment_of
from collector.otlp.span_head import head, parse
from evaluators.dialects.turns.registry import TURN_SPANS


def sent_trace_id(pieces: Iterable[bytes]) -> str | None:
    """The id of the trace that the first of these turns began, as 32 hex digits; None: no turn among them began one.

    A helper's report begins a trace, too, though no person asked: it belongs to the turn before.
    """
    try:
        found = min(_sent(pieces), default=None)
    except (DecodeError, Undecodable):
        return None
    return None if found is None else found[1].hex()


def _sent(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for piece in pieces:
        for resource in parse(piece).resource_spans:
            for scope in resource.scope_spans:
                for raw in scope.spans:
                    segment = segment_of(raw)
                    if segment is None or not segment.has_spans or head(raw).parent_span_id:
                        continue
                    span = Span.FromString(raw)
                    if span.name in TURN_SPANS:
                        yield from ((span.start_time_unix_nano, each) for each in segment.traces)
