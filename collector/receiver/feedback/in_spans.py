"""Feedback that spans carry: events of GenAI's convention, and OpenInference's annotations and evaluations. Pure.

An annotation is about the span that carries it. An evaluation is about the span that its EVALUATOR span links to
(OpenInference, "Annotations and Evaluations"); without one link, about the span that carries it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.errors import Undecodable
from collector.otlp.made_spans import plain, plain_attributes
from collector.receiver.feedback.evaluation import evaluation, kind_of, number, text, time_of
from collector.records.feedback import FeedbackSubject, Given
from evaluators.dialects.decoding.event_names import EVALUATION
from evaluators.dialects.turns.registry import OWN_SCOPE
from evaluators.model import JSON

_MARKS = (b".evaluation.", b".annotation.")
"""One of them stands in every request of spans that carries feedback."""
_PREFIXES = ("annotations.", "evaluations.")
_FIELD = re.compile(r"(annotations|evaluations)\.(\d{1,4})\.(?:annotation|evaluation)\.(\w+)")


def in_spans(request: bytes) -> Iterator[Given | Undecodable]:
    """What an ExportTraceServiceRequest says of traces; an error in place of what cannot be read.

    The request was split before: it can be parsed.
    """
    if not any(mark in request for mark in _MARKS):
        return
    for group in ExportTraceServiceRequest.FromString(request).resource_spans:
        for scope in group.scope_spans:
            if scope.scope.name == OWN_SCOPE:
                continue
            for span in scope.spans:
                if len(span.trace_id) == 16 and len(span.span_id) == 8:
                    yield from _of_span(span)


def _of_span(span: Span) -> Iterator[Given | Undecodable]:
    own: FeedbackSubject = {"trace_id": span.trace_id.hex(), "span_id": span.span_id.hex()}
    for event in span.events:
        if event.name == EVALUATION:
            attributes = plain_attributes(event.attributes)
            yield evaluation(attributes, own, event.time_unix_nano)
    found: dict[tuple[str, str], dict[str, JSON]] = {}
    for each in span.attributes:  # most are neither, and their values are not looked at
        matched = _FIELD.fullmatch(each.key) if each.key.startswith(_PREFIXES) else None
        if matched is not None:
            found.setdefault((matched[1], matched[2]), {})[matched[3]] = plain(each.value)
    for (where, _), fields in found.items():
        about = _target(span, own) if where == "evaluations" else own
        yield _annotation(fields, about, span.end_time_unix_nano)


def _target(span: Span, own: FeedbackSubject) -> FeedbackSubject:
    if len(span.links) != 1 or len(span.links[0].trace_id) != 16:
        return own
    (link,) = span.links
    about: FeedbackSubject = {"trace_id": link.trace_id.hex()}
    if len(link.span_id) == 8:
        about["span_id"] = link.span_id.hex()
    return about


def _annotation(
    fields: Mapping[str, JSON], about: FeedbackSubject, nanos: int
) -> Given | Undecodable:
    name, identifier = text(fields.get("name")), text(fields.get("identifier"))
    if name is None:
        return Undecodable("an annotation has no name")
    return Given(
        **about,
        name=name,
        value=number(fields.get("score")),
        label=text(fields.get("label")),
        comment=text(fields.get("explanation")),
        kind=kind_of(fields.get("annotator_kind")),
        time=time_of(nanos),
        id=identifier and "\0".join((*map(str, about.values()), name, identifier)),
    )
