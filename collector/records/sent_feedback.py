"""What is said of a trace or a session as it is sent: one object of a request, or what telemetry says. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, TypedDict

import msgspec

from collector.base.errors import Undecodable
from collector.otlp.json import bound_elements
from collector.otlp.wire import MAX_FIELDS
from collector.records.codec import NOT_A_RECORD

Kind = Literal["human", "code", "llm"]
SCORES = "evaluations"
MAX_BYTES = 64 << 10  # of one object of a request
LONGEST_NAME = 64  # characters of an external evaluator's name
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # as in AnswerRelevancy
_NO_WORD = re.compile(r"[^a-z0-9]+")


class Scale(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The least and the greatest value that a rating can have."""

    min: float = 0.0
    max: float = 1.0


class FeedbackSubject(TypedDict, total=False):
    """The fields of `SentFeedback` that say what feedback is about."""

    trace_id: str
    span_id: str
    session_id: str
    service: str


class SentFeedback(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Feedback as it is sent: the fields of `POST /v1/feedback`."""

    name: str
    trace_id: str | None = None
    span_id: str | None = None
    session_id: str | None = None
    service: str | None = None
    task_id: str | None = None
    value: bool | float | None = None
    label: str | None = None
    scale: Scale = Scale()
    comment: str | None = None
    kind: Kind = "human"
    source: str | None = None  # who says so, opaque; only a keyed digest of it is kept
    time: str | None = None
    id: str | None = None

    @property
    def evaluation(self) -> EvaluationOrigin:
        return EvaluationOrigin()


class EvaluationOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a score beyond `SentFeedback`: what no one may say of their own feedback."""

    version: str | None = None  # of the evaluator
    scope: Literal["trace", "session"] | None = None
    """`session`, with a trace id: the session of that trace."""
    source: str | None = None  # the instrumentation scope or SDK that sent it, with its version
    sender: str | None = None  # the service that sent it, which need not be the one that is scored
    error: str | None = None  # the type of the error that the evaluator ended with
    passed: bool | None = None  # what the evaluator itself says, where its label does not


class GivenScore(SentFeedback, frozen=True, kw_only=True):
    """The score of an external evaluator, as telemetry has it."""

    origin: EvaluationOrigin = EvaluationOrigin()

    @property
    def evaluation(self) -> EvaluationOrigin:
        return self.origin


class Evaluation(SentFeedback, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One score as it is posted: the fields of `POST /v1/evaluations`."""

    kind: Literal["code", "llm"] = "code"
    comment: str | None = msgspec.field(default=None, name="explanation")
    version: str | None = None
    scope: Literal["trace", "session"] | None = None

    @property
    def evaluation(self) -> EvaluationOrigin:
        return EvaluationOrigin(
            version=self.version,
            scope=self.scope,
            source="POST /v1/evaluations",
            sender=self.service,
        )


_given = msgspec.json.Decoder(SentFeedback)
_evaluation = msgspec.json.Decoder(Evaluation)
_list = msgspec.json.Decoder(list[msgspec.Raw])
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STRING_OR_CONSTANT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?\b(?:NaN|Infinity)\b', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>\\u[dD][89a-fA-F]..)|\\.", re.DOTALL
)


def given(item: bytes | msgspec.Raw, *, scores: bool = False) -> SentFeedback:
    """One object of a request, of `scores` as `Evaluation` has it; what is not Unicode in its texts becomes U+FFFD.

    Raises Undecodable: it is too large or not of this form; the message names the field.
    """
    if len(item) > MAX_BYTES:
        raise Undecodable(f"larger than {MAX_BYTES} bytes")
    decoder = _evaluation if scores else _given
    try:
        try:
            return decoder.decode(item)
        except UnicodeDecodeError:
            return decoder.decode(bytes(item).decode(errors="replace"))
    except NOT_A_RECORD as error:
        raise Undecodable(str(error)) from error


def items_in(body: bytes, name: str = "feedback") -> Sequence[bytes | msgspec.Raw]:
    """The objects of a request, undecoded: one, or the list under `name`; of scores also a list by itself.

    Raises Undecodable: the body has another form. Raises TooLarge: it has more elements than a request may have.
    """
    bound_elements(body)
    try:
        return _items(body, name)
    except NOT_A_RECORD:
        body = _STRING_OR_CONSTANT.sub(_strict, body, count=MAX_FIELDS)
    try:
        return _items(body, name)
    except NOT_A_RECORD as error:
        raise Undecodable(
            f'the body is neither a JSON object nor {{"{name}": [...]}}: {error}'
        ) from error


def _items(body: bytes, name: str) -> Sequence[bytes | msgspec.Raw]:
    if name == SCORES and body.lstrip()[:1] == b"[":
        return _list.decode(body)
    fields = _object.decode(body)
    return _list.decode(fields[name]) if name in fields else [body]


def _strict(token: re.Match[bytes]) -> bytes:
    """What JavaScript and Python write and JSON forbids, so that it costs one item and not its list.

    Half a surrogate pair, where a text was cut in an emoji, becomes U+FFFD; a bare NaN a text, which is refused.
    """
    found = token[0]
    if not found.startswith(b'"'):
        return b'"%s"' % found
    return _ESCAPE.sub(lambda each: rb"\ufffd" if each["half"] else each[0], found)


def slug(name: str) -> str:
    """The name of an external evaluator as label values have it: small letters, digits and `_`, at most 64 of them.

    A longer one, or one of which nothing is left, is told apart by a digest.
    """
    words = _NO_WORD.sub("_", _HUMP.sub("_", name).casefold()).strip("_")
    if 0 < len(words) <= LONGEST_NAME:
        return words
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:8]
    return f"{words[: LONGEST_NAME - 9].rstrip('_') or 'x'}_{digest}"


def external_name(name: str, taken: AbstractSet[str]) -> str:
    """The evaluator's name as its signals have it: never one of ours, which are `taken`."""
    found = slug(name)
    return f"x_{found}"[:LONGEST_NAME] if found in taken else found
