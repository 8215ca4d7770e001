"""The feedback of a request as records of the log."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import cast

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector.base.clock import Clock
from collector.base.errors import Undecodable
from collector.log.port import New
from collector.otlp.made_spans import plain, plain_attributes
from collector.receiver.feedback.evaluation import (
    Sender,
    evaluation,
    in_session,
    kind_of,
    number,
    text,
    time_of,
)
from collector.receiver.feedback.in_logs import in_logs
from collector.records.feedback import FeedbackRules
from collector.records.sent_feedback import (
    SCORES,
    FeedbackSubject,
    GivenScore,
    SentFeedback,
    given,
    items_in,
)
from evaluators.dialects.decoding.decode import EVALUATION, EVALUATION_NAME
from evaluators.dialects.turns.registry import OWN_SCOPE
from evaluators.model import JSON

# Feedback that spans carry: events of GenAI's convention, and OpenInference's annotations and evaluations. Pure.
#
# An annotation is about the span that carries it. An evaluation is about the span that its EVALUATOR span links to
# (OpenInference, "Annotations and Evaluations"); without one link, about the span that carries it. A span that has
# `gen_ai.evaluation.name` itself is a score, as Strands exports them.

_MARKS = (b".evaluation.", b".annotation.")
"""One of them is in every request of spans that carries feedback."""
_PREFIXES = ("annotations.", "evaluations.")
_FIELD = re.compile(r"(annotations|evaluations)\.(\d{1,4})\.(?:annotation|evaluation)\.(\w+)")


def in_spans(request: bytes) -> Iterator[SentFeedback | Undecodable]:
    """What an ExportTraceServiceRequest says of traces; an error in place of what cannot be read.

    The request was split before: it can be parsed.
    """
    if not any(mark in request for mark in _MARKS):
        return
    for group in ExportTraceServiceRequest.FromString(request).resource_spans:
        resource = plain_attributes(group.resource.attributes)
        for scope in group.scope_spans:
            if scope.scope.name == OWN_SCOPE:
                continue
            sender = Sender.of(scope.scope, resource)
            for span in scope.spans:
                if len(span.trace_id) == 16 and len(span.span_id) == 8:
                    yield from _of_span(span, sender)


def _of_span(span: Span, sender: Sender) -> Iterator[SentFeedback | Undecodable]:
    own: FeedbackSubject = {"trace_id": span.trace_id.hex(), "span_id": span.span_id.hex()}
    for event in span.events:
        if event.name == EVALUATION:
            attributes = plain_attributes(event.attributes)
            said = evaluation(attributes, own, event.time_unix_nano, sender)
            if said is not None:
                yield said
    found: dict[tuple[str, str], dict[str, JSON]] = {}
    for each in span.attributes:  # most are neither, and their values are not looked at
        if each.key == EVALUATION_NAME:
            said = _span_of_its_own(span, own, sender)
            if said is not None:
                yield said
        matched = _FIELD.fullmatch(each.key) if each.key.startswith(_PREFIXES) else None
        if matched is not None:
            found.setdefault((matched[1], matched[2]), {})[matched[3]] = plain(each.value)
    for (where, _), fields in found.items():
        about = _linked(span) or own if where == "evaluations" else own
        yield _annotation(fields, about, span.end_time_unix_nano, sender)


def _span_of_its_own(
    span: Span, own: FeedbackSubject, sender: Sender
) -> SentFeedback | Undecodable | None:
    """A score that is a span: about what it links to, else its parent, else its conversation, else its own trace."""
    attributes = plain_attributes(span.attributes)
    about = _linked(span) or own
    if about is own and len(span.parent_span_id) == 8:
        about = FeedbackSubject(trace_id=span.trace_id.hex(), span_id=span.parent_span_id.hex())
    elif about is own:
        about = in_session(attributes, sender.service) or own
    return evaluation(attributes, about, span.end_time_unix_nano, sender)


def _linked(span: Span) -> FeedbackSubject | None:
    if len(span.links) != 1 or len(span.links[0].trace_id) != 16:
        return None
    (link,) = span.links
    about: FeedbackSubject = {"trace_id": link.trace_id.hex()}
    if len(link.span_id) == 8:
        about["span_id"] = link.span_id.hex()
    return about


def _annotation(
    fields: Mapping[str, JSON], about: FeedbackSubject, nanos: int, sender: Sender
) -> SentFeedback | Undecodable:
    name, identifier = text(fields.get("name")), text(fields.get("identifier"))
    if name is None:
        return Undecodable("an annotation has no name")
    return GivenScore(
        **about,
        name=name,
        value=number(fields.get("score")),
        label=text(fields.get("label")),
        comment=text(fields.get("explanation")),
        kind=kind_of(fields.get("annotator_kind")),
        time=time_of(nanos),
        id=identifier and "\0".join((*map(str, about.values()), name, identifier)),
        origin=sender.origin(),
    )


MAX_ITEMS = 1_000  # objects of one posted request
MAX_CARRIED = 256 << 10
"""Bytes of the feedback that one export request carries: spans are never refused for what is said beside them."""


def said_in(request: bytes, items: str) -> Iterator[SentFeedback | Undecodable]:
    """What an export request of these `items` says, if they can say anything; it was split before."""
    if items == "spans":
        return in_spans(request)
    return in_logs(request) if items == "log_records" else iter(())


@dataclass(slots=True)
class FoundFeedback:
    """What a request says, and what became of each item."""

    records: list[New] = field(default_factory=list[New])
    results: Counter[str] = field(default_factory=Counter[str])
    """How many were accepted, invalid, not wanted (`feedback.names`), or too many for one export request."""
    rejected: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Place and reason of those that were not accepted."""


@dataclass(frozen=True, slots=True)
class FeedbackReader:
    """Reads requests by the rules of the configuration."""

    rules: FeedbackRules
    clock: Clock  # Unix seconds, for feedback that says no time

    def in_otlp(self, request: bytes, items: str) -> FoundFeedback:
        said = said_in(request, items)
        try:
            found = self._found(islice(said, MAX_ITEMS))
            if more := sum(1 for _ in said):
                found.results["too_many"] += more
        except DecodeError:  # a part of it is damaged: the rest was taken, and must not come again
            return FoundFeedback(results=Counter(invalid=1))
        size = 0
        for at, record in enumerate(found.records):
            size += len(cast(bytes, record.value))
            if size > MAX_CARRIED:
                found.results["too_many"] += len(found.records) - at
                found.results["accepted"] = at
                del found.records[at:]
                break
        return found

    def posted(self, body: bytes, *, scores: bool = False) -> FoundFeedback:
        """What the body of `POST /v1/feedback` says, or with `scores` that of `POST /v1/evaluations`.

        Raises Undecodable: it is not of that form, or has too many items.
        """
        items = items_in(body, SCORES if scores else "feedback")
        if len(items) > MAX_ITEMS:
            raise Undecodable(f"{len(items)} items; at most {MAX_ITEMS} in one request")
        return self._found(_given(each, scores=scores) for each in items)

    def _found(self, items: Iterable[SentFeedback | Undecodable]) -> FoundFeedback:
        found = FoundFeedback()
        now = self.clock()
        for at, item in enumerate(items):
            try:
                if isinstance(item, Undecodable):
                    raise item
                if (setting := self.rules.unwanted(item)) is None:
                    record = self.rules.feedback(item, now=now).record
                    found.records.append(record)
                    found.results["accepted"] += 1
                    continue
                result, why = "not_wanted", f"{setting} does not have `{item.name[:64]}`"
            except Undecodable as error:
                result, why = "invalid", str(error)
            found.results[result] += 1
            found.rejected.append((at, why))
        return found


def _given(item: bytes | msgspec.Raw, *, scores: bool) -> SentFeedback | Undecodable:
    try:
        return given(item, scores=scores)
    except Undecodable as error:
        return error
