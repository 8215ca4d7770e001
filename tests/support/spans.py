"""OTLP requests for tests, made with the full schema."""

from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A span to be sent. Ids are small numbers: 0 as a parent means none."""

    trace: int = 1
    span: int
    parent: int = 0
    flags: int = 0x101
    start: int = 1
    session: str | None = None
    service: str = "shop"
    text: str = ""
    score: str | None = None  # the name of the evaluator whose score it is


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")


def root(trace: int = 1, span: int = 1, *, session: str | None = None) -> Made:
    return Made(trace=trace, span=span, session=session)


def child(span: int, parent: int = 1, *, trace: int = 1, flags: int = 0x101) -> Made:
    return Made(trace=trace, span=span, parent=parent, flags=flags)


def remote(span: int, parent: int = 99, *, trace: int = 1) -> Made:
    return Made(trace=trace, span=span, parent=parent, flags=0x301)


def request(*spans: Made) -> bytes:
    """One request; spans of one service share its resource."""
    message = ExportTraceServiceRequest()
    for service in dict.fromkeys(made.service for made in spans):
        resource = message.resource_spans.add()
        attribute = resource.resource.attributes.add(key="service.name")
        attribute.value.string_value = service
        scope = resource.scope_spans.add()
        scope.scope.name = "test"
        for made in spans:
            if made.service != service:
                continue
            span = scope.spans.add(
                trace_id=trace_id(made.trace),
                span_id=span_id(made.span),
                parent_span_id=span_id(made.parent) if made.parent else b"",
                name=f"span {made.span} {made.text}",
                start_time_unix_nano=made.start,
                end_time_unix_nano=made.start + 1,
                flags=made.flags,
            )
            if made.session is not None:
                session = span.attributes.add(key="session.id")
                session.value.string_value = made.session
            if made.score is not None:
                score = span.attributes.add(key="gen_ai.evaluation.name")
                score.value.string_value = made.score
    return message.SerializeToString()


def ids(spans: Sequence[Made]) -> set[bytes]:
    return {span_id(made.span) for made in spans}
