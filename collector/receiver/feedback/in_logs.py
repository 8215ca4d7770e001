"""Feedback that log records carry: of GenAI's convention, of Copilot in VS Code, and of Claude Code. Pure.

gen_ai.evaluation.result    its trace, else its conversation
copilot_chat.user.feedback  what people say, accept and keep: their trace, else their conversation
copilot_chat.edit.feedback    (VS Code, "Monitor agent usage with OpenTelemetry")
copilot_chat.edit.survival
feedback_survey             of Claude Code: their session (Claude Code, "Monitoring")
tool_decision               the same, where a person decided
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from msgspec import structs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from collector.base.errors import Undecodable
from collector.otlp.made_spans import event_of, plain_attributes
from collector.receiver.feedback.evaluation import (
    Sender,
    evaluation,
    in_session,
    number,
    text,
    time_of,
)
from collector.records.sent_feedback import FeedbackSubject, SentFeedback
from evaluators.dialects.decoding.decode import EVALUATION
from evaluators.dialects.turns.place import AgentEvent
from evaluators.dialects.turns.registry import OWN_SCOPE

_MARKS = (b"gen_ai.evaluation.", b"copilot_chat.", b"feedback_survey", b"tool_decision")
_CLAUDE_CODE = "claude_code."
_ANSWERS = {"good": "good", "fine": "neutral", "bad": "bad"}
"""The survey of Claude Code; whoever dismisses it says nothing."""
Read = Callable[[AgentEvent, Sender], "SentFeedback | Undecodable | None"]


def in_logs(request: bytes) -> Iterator[SentFeedback | Undecodable]:
    """What an ExportLogsServiceRequest says of traces and sessions; an error in place of what cannot be read.

    The request was split before: it can be parsed.
    """
    if not any(mark in request for mark in _MARKS):
        return
    for group in ExportLogsServiceRequest.FromString(request).resource_logs:
        resource = plain_attributes(group.resource.attributes)
        for scope in group.scope_logs:
            if scope.scope.name == OWN_SCOPE:
                continue
            sender = Sender.of(scope.scope, resource)
            for record in scope.log_records:
                read = _READ.get(_name(record).removeprefix(_CLAUDE_CODE))
                if read is None:
                    continue
                found = read(event_of(record, scope.scope.name, resource), sender)
                if found is not None:
                    yield found


def _name(record: LogRecord) -> str:
    named = (each.value.string_value for each in record.attributes if each.key == "event.name")
    return next(named, "") or record.event_name


def _evaluation(event: AgentEvent, sender: Sender) -> SentFeedback | Undecodable | None:
    if isinstance(within := event.body, dict):  # where some exporters keep an event's attributes
        event = structs.replace(event, attributes={**within, **event.attributes})
    about = _subject(event, sender.service)
    return evaluation(event.attributes, about, event.time_unix_nano, sender)


def _word(attribute: str, event: AgentEvent, sender: Sender) -> SentFeedback | Undecodable | None:
    return _said(event, sender, label=text(event.attributes.get(attribute)))


def _survival(event: AgentEvent, sender: Sender) -> SentFeedback | Undecodable | None:
    """How much of an edit is still there: 1 is all of it."""
    return _said(event, sender, value=number(event.attributes.get("survival_rate_four_gram")))


def _survey(event: AgentEvent, sender: Sender) -> SentFeedback | Undecodable | None:
    answer = (text(event.attributes.get("response")) or "").lower()
    return _said(event, sender, label=_ANSWERS.get(answer), of="appearance_id")


def _decision(event: AgentEvent, sender: Sender) -> SentFeedback | Undecodable | None:
    """A call that a person allowed or refused; what settings and hooks decide is no one's opinion."""
    if not (text(event.attributes.get("source")) or "").startswith("user_"):
        return None
    decision = text(event.attributes.get("decision")) or ""
    label = {"accept": "accepted", "reject": "rejected"}.get(decision)
    return _said(event, sender, label=label, of="tool_use_id")


_READ: Mapping[str, Read] = {
    EVALUATION: _evaluation,
    "copilot_chat.user.feedback": partial(_word, "rating"),
    "copilot_chat.edit.feedback": partial(_word, "outcome"),
    "copilot_chat.edit.survival": _survival,
    "feedback_survey": _survey,
    "tool_decision": _decision,
}


def _said(
    event: AgentEvent,
    sender: Sender,
    *,
    value: bool | float | None = None,
    label: str | None = None,
    of: str = "request_id",
) -> SentFeedback | Undecodable | None:
    """A person's word, if there is one; `of`: the attribute that tells one from another about the same subject."""
    if value is None and label is None:
        return None
    subject = _subject(event, sender.service)
    if not subject:
        return Undecodable(f"{event.name} names neither a trace nor a session")
    name = event.name.removeprefix(_CLAUDE_CODE)
    one = text(event.attributes.get(of))
    return SentFeedback(
        **subject,
        name=name,
        value=value,
        label=label,
        kind="human",
        time=time_of(event.time_unix_nano),
        id=one and "\0".join((*map(str, subject.values()), name, one)),
    )


def _subject(event: AgentEvent, service: str) -> FeedbackSubject:
    """Of Claude Code the session: the trace whose id its record may carry is not the turn that is made of records."""
    session = in_session(event.attributes, service)
    if session and "." not in event.name.removeprefix(_CLAUDE_CODE):
        return session
    if event.trace_id:
        about: FeedbackSubject = {"trace_id": event.trace_id}
        if event.span_id:
            about["span_id"] = event.span_id
        return about
    return session
