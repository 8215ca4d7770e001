"""What OTLP already says of traces and sessions: every row of docs/feedback.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collector.log.port import FEEDBACK
from collector.receiver.feedback.found import MAX_CARRIED, FeedbackReader
from collector.records.feedback import Feedback, FeedbackRules, decode_feedback
from tests.support.dialect_spans import key_values
from tests.support.recordings import requests
from tests.support.table import for_each

TRACE, SPAN = bytes(range(16)), bytes(range(8))
NOW = 1_700_000_000.0
NANOS = int(NOW * 1e9)


def reader(**rules: Any) -> FeedbackReader:
    return FeedbackReader(FeedbackRules(**rules), lambda: NOW)


def said(request: bytes, items: str = "log_records", **rules: Any) -> list[Feedback]:
    """What a request says."""
    records = reader(**rules).in_otlp(request, items).records
    assert {each.topic for each in records} <= {FEEDBACK}
    return [decode_feedback(bytes(each.value or b"")) for each in records]  # type: ignore[arg-type]


def in_a_log(
    name: str,
    attributes: Mapping[str, Any],
    *,
    scope: str = "app",
    trace: bytes = b"",
    service: str = "shop",
) -> bytes:
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add()
    group.resource.attributes.extend(key_values({"service.name": service}))
    logs = group.scope_logs.add()
    logs.scope.name = scope
    record = logs.log_records.add(
        event_name=name, time_unix_nano=NANOS, trace_id=trace, span_id=SPAN if trace else b""
    )
    record.attributes.extend(key_values(attributes))
    return request.SerializeToString()


def in_a_span(
    attributes: Mapping[str, Any],
    *,
    scope: str = "app",
    events: Mapping[str, Mapping[str, Any]] | None = None,
    links: int = 0,
) -> bytes:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add()
    spans.scope.name = scope
    span = spans.spans.add(trace_id=TRACE, span_id=SPAN, name="step", end_time_unix_nano=NANOS)
    span.attributes.extend(key_values(attributes))
    for name, fields in (events or {}).items():
        event = span.events.add(name=name, time_unix_nano=NANOS)
        event.attributes.extend(key_values(fields))
    for number in range(links):
        span.links.add(trace_id=bytes([number + 1]) * 16, span_id=bytes([number + 1]) * 8)
    return request.SerializeToString()


EVALUATION = {
    "gen_ai.evaluation.name": "relevance",
    "gen_ai.evaluation.score.value": 0.9,
    "gen_ai.evaluation.score.label": "pass",
    "gen_ai.evaluation.explanation": "to the point",
}


def test_an_evaluation_of_the_convention_is_about_its_trace_and_span() -> None:
    for request, items in (
        (in_a_log("gen_ai.evaluation.result", EVALUATION, trace=TRACE), "log_records"),
        (in_a_span({}, events={"gen_ai.evaluation.result": EVALUATION}), "spans"),
    ):
        (found,) = said(request, items)
        assert {
            "trace_id": TRACE.hex(),
            "span_id": SPAN.hex(),
            "name": "relevance",
            "value": 0.9,
            "label": "pass",
            "comment": "to the point",
            "kind": "code",
            "opinion": "positive",
            "time": "2023-11-14T22:13:20.000000Z",
        }.items() <= msgspec.to_builtins(found).items()


PREFIX = "gen_ai.evaluation."


@for_each(
    ("attributes", "expected"),
    [
        ({"score.value": 1}, {"value": 1.0}),
        ({"score.value": "0.5"}, {"value": 0.5}),
        ({"score.value": "85%"}, {"value": 0.85}),
        ({"score.value": True}, {"value": 1.0}),
        ({"score": 0.5, "label": "ok"}, {"value": 0.5, "label": "ok"}),
        ({"score.label": "fail"}, {"label": "fail"}),
        ({"passed": False}, {"evaluation": {"passed": False, "sender": "shop", "source": "app"}}),
        ({"score.value": 3, "min_value": 1, "max_value": 5}, {"scale": (1.0, 5.0)}),
        ({"score.value": [1], "score.label": "ok", "explanation": 7}, {"label": "ok"}),
    ],
)
def test_the_spellings_of_a_score(attributes: Mapping[str, Any], expected: dict[str, Any]) -> None:
    """As attributes, and as the body that some exporters keep them in."""
    name = "gen_ai.evaluation.result"
    fields = {f"{PREFIX}{key}": each for key, each in {"name": "a B", **attributes}.items()}
    bodily = ExportLogsServiceRequest.FromString(in_a_log(name, {}, trace=TRACE))
    record = bodily.resource_logs[0].scope_logs[0].log_records[0]
    record.body.kvlist_value.values.extend(key_values(fields))
    for request in (in_a_log(name, fields, trace=TRACE), bodily.SerializeToString()):
        (found,) = said(request)
        kept = msgspec.to_builtins(found)
        assert {key: kept.get(key) for key in expected} == expected
        assert kept["name"] == "a B"
        assert ("value" in kept) is ("value" in expected or "scale" in expected)


def test_an_evaluation_without_a_trace_is_about_its_conversation() -> None:
    fields = {**EVALUATION, "gen_ai.conversation.id": "c-1", "spanwise.feedback.kind": "human"}

    (found,) = said(in_a_log("gen_ai.evaluation.result", fields))

    assert (found.session_id, found.service, found.kind) == ("c-1", "shop", "human")


@pytest.mark.parametrize(
    ("scope", "attributes"),
    [("spanwise", EVALUATION), ("otel", {**EVALUATION, "spanwise.id": "1"})],
)
def test_our_own_scores_are_no_feedback(scope: str, attributes: Mapping[str, Any]) -> None:
    """Nor where a Collector gave them a scope of its own."""
    name = "gen_ai.evaluation.result"
    assert said(in_a_log(name, attributes, scope=scope, trace=TRACE)) == []
    assert said(in_a_span({}, scope=scope, events={name: attributes}), "spans") == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "NaN"])
def test_a_score_that_is_no_number_is_none_and_its_label_counts(value: Any) -> None:
    name = "gen_ai.evaluation.result"
    attributes = {**EVALUATION, "gen_ai.evaluation.score.value": value}
    (found,) = said(in_a_log(name, attributes, trace=TRACE))
    assert (found.value, found.label) == (None, "pass")
    del attributes["gen_ai.evaluation.score.label"]
    refused = reader().in_otlp(in_a_log(name, attributes, trace=TRACE), "log_records")
    assert (refused.records, refused.results) == ([], {"invalid": 1})


def test_annotations_are_about_the_span_that_carries_them() -> None:
    said_by_desk: dict[str, Any] = {
        "name": "helpful",
        "score": 0,
        "annotator_kind": "HUMAN",
        "identifier": "desk-7",
        "explanation": "no",
    }
    tone = {"name": "tone", "label": "good", "annotator_kind": "LLM"}
    fields = {
        f"annotations.{number}.annotation.{key}": each
        for number, annotation in enumerate((said_by_desk, tone))
        for key, each in annotation.items()
    }

    first, second = said(in_a_span(fields), "spans")

    assert (first.name, first.kind, first.opinion) == ("helpful", "human", "negative")
    assert first.comment == "no"
    assert (second.name, second.kind, second.opinion) == ("tone", "llm", "positive")
    assert {each.span_id for each in (first, second)} == {SPAN.hex()}
    again = {**fields, "annotations.0.annotation.score": 1}
    assert said(in_a_span(again), "spans")[0].id == first.id, "the identifier names it"


@pytest.mark.parametrize(("links", "about"), [(0, TRACE), (1, bytes([1]) * 16), (2, TRACE)])
def test_evaluations_are_about_the_span_that_their_evaluator_links_to(
    links: int, about: bytes
) -> None:
    fields = {
        "openinference.span.kind": "EVALUATOR",
        "evaluations.0.evaluation.name": "hallucination",
        "evaluations.0.evaluation.score": 1,
        "evaluations.0.evaluation.annotator_kind": "LLM",
    }

    (found,) = said(in_a_span(fields, links=links), "spans")

    assert (found.trace_id, found.kind) == (about.hex(), "llm")


@pytest.mark.parametrize(
    ("name", "fields", "opinion", "value"),
    [
        ("copilot_chat.user.feedback", {"rating": "positive"}, "positive", None),
        ("copilot_chat.user.feedback", {"rating": "negative"}, "negative", None),
        ("copilot_chat.edit.feedback", {"outcome": "accepted"}, "positive", None),
        ("copilot_chat.edit.feedback", {"outcome": "rejected"}, "negative", None),
        ("copilot_chat.edit.survival", {"survival_rate_four_gram": 0.9}, "positive", 0.9),
        ("copilot_chat.edit.survival", {"survival_rate_four_gram": 0.1}, "negative", 0.1),
    ],
)
def test_what_people_do_in_vs_code(
    name: str, fields: dict[str, Any], opinion: str, value: float | None
) -> None:
    fields = {**fields, "conversation_id": "c-1", "request_id": "r-1"}

    (of_trace,) = said(in_a_log(name, fields, trace=TRACE))
    (of_session,) = said(in_a_log(name, fields))
    (other,) = said(in_a_log(name, {**fields, "request_id": "r-2"}))

    assert (of_trace.name, of_trace.kind, of_trace.trace_id) == (name, "human", TRACE.hex())
    assert (of_trace.opinion, of_trace.value) == (opinion, value)
    assert (of_session.session_id, of_session.service) == ("c-1", "shop")
    assert of_session.id != other.id, "each request has its own"


CLAUDE = {"session.id": "s-1", "event.sequence": 3}
SCOPE = "com.anthropic.claude_code.events"


SURVEY = {"appearance_id": "a"}
ANSWERED = {**SURVEY, "event_type": "responded"}
CALL = {"tool_use_id": "toolu_1"}


@for_each("prefix", ["", "claude_code."])
@for_each(
    ("name", "fields", "opinion"),
    [
        ("feedback_survey", {**ANSWERED, "response": "good"}, "positive"),
        ("feedback_survey", {**ANSWERED, "response": "fine"}, "neutral"),
        ("feedback_survey", {**ANSWERED, "response": "bad"}, "negative"),
        ("feedback_survey", {**ANSWERED, "response": "dismissed"}, None),
        ("feedback_survey", {**SURVEY, "event_type": "appeared"}, None),
        ("tool_decision", {**CALL, "source": "user_reject", "decision": "reject"}, "negative"),
        ("tool_decision", {**CALL, "source": "user_temporary", "decision": "accept"}, "positive"),
        ("tool_decision", {**CALL, "source": "user_permanent", "decision": "accept"}, "positive"),
        ("tool_decision", {**CALL, "source": "user_abort", "decision": "reject"}, "negative"),
        ("tool_decision", {**CALL, "source": "config", "decision": "accept"}, None),
        ("tool_decision", {**CALL, "source": "hook", "decision": "reject"}, None),
    ],
)
def test_only_what_a_person_says_or_decides_in_claude_code_is_feedback(
    prefix: str, name: str, fields: dict[str, Any], opinion: str | None
) -> None:
    found = said(in_a_log(prefix + name, {**CLAUDE, **fields}, scope=SCOPE, trace=TRACE))

    wanted = [] if opinion is None else [("s-1", name, opinion)]
    assert [(each.session_id, each.name, each.opinion) for each in found] == wanted


def test_a_recording_of_claude_code_in_which_a_person_refused_a_call() -> None:
    folder = Path(__file__).parents[3] / "data" / "captures_logs" / "claude_code_tui"
    found = [each for body in requests(folder / "user_reject.logs.otlp") for each in said(body)]

    assert [(each.name, each.opinion, each.label) for each in found] == [
        ("tool_decision", "negative", "rejected")
    ]


RESULT, UNREADABLE = "gen_ai.evaluation.result", b"\x0a\xff gen_ai.evaluation.result"


@for_each(
    ("sent", "items", "rules", "result"),
    [
        (in_a_log(RESULT, {PREFIX + "name": "x"}, trace=TRACE), "log_records", {}, "invalid"),
        (
            in_a_log(RESULT, {PREFIX + "score.value": 1.0}, trace=TRACE),
            "log_records",
            {},
            "invalid",
        ),
        (in_a_log(RESULT, EVALUATION, service=""), "log_records", {}, "invalid"),
        (
            in_a_log("copilot_chat.user.feedback", {"rating": "positive"}),
            "log_records",
            {},
            "invalid",
        ),
        (UNREADABLE, "spans", {}, "invalid"),
        (UNREADABLE, "log_records", {}, "invalid"),
        (
            in_a_log(RESULT, EVALUATION, trace=TRACE),
            "log_records",
            {"evaluations": frozenset({"tone"})},
            "not_wanted",
        ),
    ],
)
def test_what_cannot_be_kept_is_counted_and_refuses_nothing(
    sent: bytes, items: str, rules: dict[str, Any], result: str
) -> None:
    """It says nothing, or of nothing, cannot be parsed, or has a name that is not wanted."""
    found = reader(**rules).in_otlp(sent, items)

    assert (found.records, dict(found.results)) == ([], {result: 1})


def test_what_is_too_much_for_one_request_is_counted() -> None:
    fields: dict[str, Any] = {}
    for number in range(40):
        fields[f"annotations.{number}.annotation.name"] = f"n{number}"
        fields[f"annotations.{number}.annotation.label"] = "good"
        fields[f"annotations.{number}.annotation.explanation"] = "x" * 16_000

    found = reader().in_otlp(in_a_span(fields), "spans")

    assert sum(len(bytes(each.value or b"")) for each in found.records) <= MAX_CARRIED  # type: ignore[arg-type]
    assert found.results["accepted"] == len(found.records) > 10
    assert found.results["accepted"] + found.results["too_many"] == 40
