"""The event `gen_ai.evaluation.result` as a score, and the values that all events have in common. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, cast

import msgspec
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

from collector.base.errors import Undecodable
from collector.records.feedback import MAX_TEXT
from collector.records.sent_feedback import (
    EvaluationOrigin,
    FeedbackSubject,
    GivenScore,
    Kind,
    Scale,
    SentFeedback,
)
from collector.records.signal import rfc3339
from evaluators.dialects.decoding.decode import EVALUATION_NAME
from evaluators.model import JSON

_PREFIX = "gen_ai.evaluation."
_CONVERSATION = ("gen_ai.conversation.id", "conversation_id", "session.id")
_OURS = "spanwise.id"
"""Every score that we send has it, whatever scope a Collector gives it on its way back."""
_KINDS = frozenset({"human", "code", "llm"})
_LATEST = 253_402_300_799
"""The last second that RFC 3339 can say."""


def evaluation(
    attributes: Mapping[str, JSON], subject: FeedbackSubject, nanos: int, sender: Sender
) -> SentFeedback | Undecodable | None:
    """One event, or a span of its own; None: it is one of ours that comes back.

    `subject`: the fields of `SentFeedback` that say what it is about, `nanos`: its time.
    """
    if _OURS in attributes:
        return None
    name = text(attributes.get(EVALUATION_NAME))
    if name is None:
        return Undecodable("an evaluation has no gen_ai.evaluation.name")
    if not subject:
        return Undecodable("an evaluation names neither a trace nor a conversation")
    more = _azure(attributes.get("internal_properties"))

    def first(*keys: str) -> JSON:
        found = (each.get(_PREFIX + key) for key in keys for each in (attributes, more))
        return next((each for each in found if each is not None), None)

    return GivenScore(
        **subject,
        name=name,
        value=number(first("score.value", "score")),  # also without its last part
        scale=_scale(first("min_value"), first("max_value")),
        label=text(first("score.label", "label")),
        comment=text(first("explanation")),
        kind=kind_of(attributes.get("spanwise.feedback.kind")),
        time=time_of(nanos),
        id=text(attributes.get("gen_ai.response.id")),
        origin=sender.origin(
            version=text(more.get("gen_ai.evaluator.version")),
            error=text(attributes.get("error.type")),
            passed=_truth(first("passed", "test_pass")),  # of OpenTelemetry's utilities; of Strands
        ),
    )


class Sender(NamedTuple):
    """Who sends a score: its instrumentation scope, and the service that it runs in."""

    scope: str
    version: str
    service: str
    sdk: str = ""

    @classmethod
    def of(cls, scope: InstrumentationScope, resource: Mapping[str, JSON]) -> Sender:
        service = text(resource.get("service.name")) or ""
        sdk = text(resource.get("telemetry.sdk.name")) or ""
        return cls(scope.name, scope.version, service, sdk)

    def origin(
        self,
        *,
        version: str | None = None,
        error: str | None = None,
        passed: bool | None = None,
    ) -> EvaluationOrigin:
        sdk = "" if self.sdk in ("", "opentelemetry") else f"({self.sdk})"
        source = " ".join(each for each in (self.scope, self.version, sdk) if each)
        return EvaluationOrigin(
            version=version and version[:MAX_TEXT],
            source=source[:MAX_TEXT] or None,
            sender=self.service[:MAX_TEXT] or None,
            error=error and error[:MAX_TEXT],
            passed=passed,
        )


def in_session(attributes: Mapping[str, JSON], service: str) -> FeedbackSubject:
    """The session that the attributes name; empty: none, or the service that it belongs to is not known."""
    found = next((said for key in _CONVERSATION if (said := text(attributes.get(key)))), None)
    return {"session_id": found, "service": service} if found and service else {}


def text(value: JSON) -> str | None:
    return value if isinstance(value, str) and value else None


def _azure(value: JSON) -> Mapping[str, JSON]:
    """What Azure AI Evaluation says beside the convention, as one JSON text."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str) else None
    except (msgspec.DecodeError, RecursionError):
        return {}
    return cast(Mapping[str, JSON], found) if isinstance(found, dict) else {}


def _scale(low: JSON, high: JSON) -> Scale:
    least, most = number(low), number(high)
    if least is None or most is None or not least < most:
        return Scale()
    return Scale(min=float(least), max=float(most))


def _truth(value: JSON) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def number(value: JSON) -> bool | float | None:
    """A finite number, which may be written as a text, or a truth value; else None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            value = float(value[:-1]) / 100 if value[-1:] == "%" else float(value)
        except ValueError:
            return None
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def kind_of(value: JSON) -> Kind:
    """Who judged, in any letters; `code` where it is not said, or is another word."""
    kind = value.lower() if isinstance(value, str) else ""
    return cast(Kind, kind) if kind in _KINDS else "code"


def time_of(nanos: int) -> str | None:
    """A time as `SentFeedback` has it; None: it is not said."""
    return rfc3339(min(nanos / 1e9, _LATEST)) if nanos else None
