"""What people, code and models say of a trace or a session after it ran: the records of topic `feedback`. Pure.

    POST /v1/feedback, thumbs of the page   -> SentFeedback -+
    POST /v1/evaluations                    -> SentFeedback -+-> FeedbackRules.feedback -> Feedback
    OTLP events, attributes and spans       -> SentFeedback -+

What people say changes no score; the same id again replaces it. What code or models say is the score of an external
evaluator: it becomes a signal (`records/external.py`), and the newest of an id wins.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Literal

import msgspec
from msgspec import structs

from collector.base.errors import Undecodable
from collector.config.tree import Config
from collector.log.port import FEEDBACK, New
from collector.otlp.marking import Marking, Steps
from collector.records.codec import decode
from collector.records.sent_feedback import EvaluationOrigin, Kind, Scale, SentFeedback, slug
from collector.records.sessions import session_key

Opinion = Literal["positive", "negative", "neutral"]
"""`neutral`: neither, or nothing that is known as one of the two."""
TYPE = "spanwise.feedback.v1"
MAX_TEXT = 512
"""Characters of an id, a name or a label."""
MAX_COMMENT = 16_384  # characters of a comment; what is longer is cut
_NO_KEY = b"spanwise"  # the key where `redaction.key` is not set: the digests can be told apart, and guessed
_HEX = ("trace_id", "span_id")
_TRACE_ID, _SPAN_ID = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{16}")
_OPINIONS: dict[str, Opinion] = {
    "thumbs_up": "positive",
    "positive": "positive",
    "pass": "positive",
    "accepted": "positive",
    "good": "positive",
    "thumbs_down": "negative",
    "negative": "negative",
    "fail": "negative",
    "rejected": "negative",
    "bad": "negative",
}


class Feedback(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag=TYPE
):
    """One record of topic `feedback`, as JSON; sinks hand it on as it is."""

    id: str  # 32 hex; the same id again replaces
    time: str  # when it was said, RFC 3339
    name: str
    kind: Kind
    opinion: Opinion
    trace_id: str | None = None
    span_id: str | None = None
    session_id: str | None = None
    service: str | None = None
    task_id: str | None = None
    value: float | None = None
    label: str | None = None
    comment: str | None = None
    source: str | None = None
    scale: tuple[float, float] | None = None  # of a score, where it was said with it
    evaluation: EvaluationOrigin | None = None  # None: people say it

    @property
    def subject(self) -> tuple[Literal["trace", "session", "task"], str]:
        if self.session_id is not None:
            return "session", self.session_id
        return (
            ("trace", self.trace_id) if self.trace_id is not None else ("task", self.task_id or "")
        )

    @property
    def key(self) -> bytes:
        """Of its record: what is said of one subject stays in order."""
        kind, ident = self.subject
        return session_key(self.service or "", ident) if kind == "session" else ident.encode()

    @property
    def record(self) -> New:
        return New(topic=FEEDBACK, key=self.key, value=msgspec.json.encode(self))


decode_feedback = partial(decode, msgspec.json.Decoder(Feedback))
"""The feedback in a record. Raises UnknownKind: a newer version wrote it. Raises Undecodable: it is not one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRules:
    """How feedback is read: `feedback` and `redaction` of the configuration."""

    names: frozenset[str] | None = None  # only these; None: all
    evaluations: frozenset[str] | None = None  # the same of external evaluators
    labels: Mapping[str, Opinion] = field(default_factory=dict[str, Opinion])
    """What labels mean beyond the known ones, by label in small letters."""
    marking: Marking | None = None
    key: bytes = _NO_KEY  # of the digests of sources
    content: bool = True  # whether comments are kept

    @classmethod
    def of(cls, config: Config) -> FeedbackRules:
        redaction, feedback = config.redaction, config.feedback
        evaluated = config.evaluations.names
        key = None if redaction.key is None else redaction.key.get_secret_value()
        return cls(
            names=None if feedback.names is None else frozenset(feedback.names),
            evaluations=None if evaluated is None else frozenset(map(slug, evaluated)),
            labels={plain_label(label): opinion for label, opinion in feedback.labels.items()},
            marking=Marking(redaction.patterns, key) if redaction.patterns else None,
            key=_NO_KEY if key is None else key.encode()[:64],
            content=redaction.content == "keep",
        )

    def unwanted(self, item: SentFeedback) -> str | None:
        """The setting by which it is not kept; None: it is."""
        if item.kind == "human":
            return (
                "feedback.names" if self.names is not None and item.name not in self.names else None
            )
        wanted = self.evaluations is None or slug(item.name) in self.evaluations
        return None if wanted else "evaluations.names"

    def feedback(self, item: SentFeedback, *, now: float) -> Feedback:
        """What is kept of it; `now`: unix seconds, for what says no time. Raises Undecodable: what is wrong with it."""
        item = _in_small_letters(item)
        _check(item)
        number = None if item.value is None else float(item.value)
        source = None if item.source is None else self._digest(item.source)
        subject = (
            item.trace_id or "",
            item.span_id or "",
            self._marked(item.service, identifies=True) or "",
            self._marked(item.session_id, identifies=True) or "",
            self._marked(item.task_id, identifies=True) or "",
        )
        named = (item.id,) if item.id else (*subject, item.name, item.kind, source or "")
        origin = None if item.kind == "human" else item.evaluation
        if origin is not None:
            named = ("evaluation", *subject, item.name, origin.version or "", item.id or "")
        return Feedback(
            id=hashlib.sha256("\0".join(named).encode(errors="replace")).hexdigest()[:32],
            time=_time(item.time, now),
            name=self._marked(item.name) or "",
            kind=item.kind,
            opinion=self._opinion(item, number),
            trace_id=subject[0] or None,
            span_id=subject[1] or None,
            service=subject[2] or None,
            session_id=subject[3] or None,
            task_id=subject[4] or None,
            value=number,
            label=self._marked(item.label),
            comment=self._comment(item.comment),
            source=source,
            scale=None
            if origin is None or item.scale == Scale()
            else (item.scale.min, item.scale.max),
            evaluation=origin,
        )

    def _opinion(self, item: SentFeedback, number: float | None) -> Opinion:
        """A known label decides; else the number, by the middle of its scale."""
        label = None if item.label is None else plain_label(item.label)
        if label is not None and (said := self.labels.get(label) or _OPINIONS.get(label)):
            return said
        low, high = item.scale.min, item.scale.max
        if number is None or not low <= number <= high:
            return "neutral"
        middle = low / 2 + high / 2  # the sum may be infinite
        return "neutral" if number == middle else "positive" if number > middle else "negative"

    def _comment(self, comment: str | None) -> str | None:
        if not comment or not self.content:
            return None
        return self._marked(comment[:MAX_COMMENT])

    def _marked(self, text: str | None, *, identifies: bool = False) -> str | None:
        """The text without secrets: ids are marked as those of spans are, so that they go on to be the same."""
        if not text or self.marking is None:
            return text
        raw = text.encode(errors="replace")
        marked = self.marking.text(raw, Steps(len(raw)), identifies=identifies)
        return text if marked is None else marked.decode(errors="replace")

    def _digest(self, source: str) -> str:
        raw = source.encode(errors="replace")
        return hashlib.blake2b(raw, key=self.key, digest_size=8).hexdigest()


def _in_small_letters(item: SentFeedback) -> SentFeedback:
    changed = {name: text.lower() for name in _HEX if (text := getattr(item, name)) is not None}
    return structs.replace(item, **changed) if changed else item


def _check(item: SentFeedback) -> None:
    subjects = [
        name for name in ("trace_id", "session_id", "task_id") if getattr(item, name) is not None
    ]
    if len(subjects) != 1:
        got = " and ".join(subjects) or "none of them"
        raise Undecodable(f"expected one of trace_id, session_id and task_id, got {got}")
    if item.trace_id is not None and not _TRACE_ID.fullmatch(item.trace_id):
        raise Undecodable("trace_id: expected 32 hexadecimal digits")
    if item.span_id is not None and (item.trace_id is None or not _SPAN_ID.fullmatch(item.span_id)):
        raise Undecodable("span_id: expected 16 hexadecimal digits, with trace_id")
    if item.session_id is not None and not item.service:
        raise Undecodable("session_id: `service` must be there too; a session belongs to a service")
    said = item.evaluation
    if item.value is None and not item.label and said.error is None and said.passed is None:
        raise Undecodable("expected a value (true, false or a number) or a label")
    _check_number(item)
    for name, text in _texts(item):
        if not text or len(text) > MAX_TEXT:
            raise Undecodable(f"{name}: expected 1 to {MAX_TEXT} characters")


def _check_number(item: SentFeedback) -> None:
    if not item.scale.min < item.scale.max or math.isinf(item.scale.max - item.scale.min):
        raise Undecodable("scale: `min` must be below `max`, and their difference finite")
    if isinstance(item.value, float) and not math.isfinite(item.value):
        raise Undecodable("value: expected a finite number")


def _texts(item: SentFeedback) -> Iterable[tuple[str, str]]:
    names = ("name", "session_id", "task_id", "label", "source", "id")
    texts = {name: getattr(item, name) for name in names}
    texts |= {"service": item.service or None, "version": item.evaluation.version}
    return ((name, text) for name, text in texts.items() if text is not None)


def _time(text: str | None, now: float) -> str:
    """As RFC 3339 in UTC; a zone may put it outside of the years 1 to 9999."""
    try:
        found = datetime.fromtimestamp(now, UTC) if text is None else datetime.fromisoformat(text)
        utc = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Undecodable("time: expected RFC 3339, such as 2026-11-28T12:00:00Z") from error
    return utc.isoformat(timespec="microseconds").replace("+00:00", "Z")


def plain_label(label: str) -> str:
    return label.strip().casefold().replace(" ", "_").replace("-", "_")
