"""What is written into a tool: a final score, or that there is none any more, on the tool's trace or session."""

import hashlib
import uuid
from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace

from collector.log.port import Position
from collector.records.signal import Signal, decode_signal
from collector.records.signal_batch import Published
from evaluators.digest import canonical

SPACE = uuid.UUID("6f5d0f4e-53a3-5c0e-9d6c-2b1f2f0b6a11")  # of the keys that are UUIDs


class WrittenSubject(NamedTuple):
    kind: Literal["trace", "session"]
    id: str


class WrittenScore(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One evaluator's final answer about one subject. Without `value` and `error`, what was there is taken away."""

    position: Position
    key: str  # one evaluator has one place per subject: the next score of this key replaces it
    subject: WrittenSubject
    signal: Signal  # without its content
    value: float | None
    passed: bool | None
    comment: str | None
    metadata: Mapping[str, str]
    error: str | None = None

    @property
    def name(self) -> str:
        return self.signal.evaluator

    @property
    def by_model(self) -> bool:
        return self.signal.method == "llm_judge"

    @property
    def is_gone(self) -> bool:
        return self.value is None and self.error is None

    @property
    def label(self) -> str | None:
        return None if self.passed is None else ("pass" if self.passed else "fail")

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(SPACE, self.key))


def key_of(service: str, scope: str, subject: str, evaluator: str) -> str:
    """Of a score's place in a tool: neither its revision nor its method, so that a verdict replaces its stand-in."""
    parts = ["outlet", service, scope, subject, evaluator]
    return hashlib.sha256(canonical(parts)).hexdigest()[:32]


class ScoreShape(NamedTuple):
    sessions: Collection[str]
    """The session sources that the tool reads too: their sessions are its own."""
    hangs_on: Literal["session", "first"] = "session"
    """`first`: the tool has no scores of sessions, only of a session's first trace."""
    takes_sessions: bool = True
    takes_errors: bool = False
    replaces: bool = True
    """False: the tool has no keys, so that a score is written once and never taken away."""
    evaluators: frozenset[str] | None = None  # None: all of them
    explanation: int = 1000  # characters
    page: str | None = None  # where Spanwise's own page is, for links
    tool: tuple[str, ...] = ()
    """Words of the scopes and SDKs that send its own scores: it has those."""

    def is_of_the_tool(self, signal: Signal) -> bool:
        source = str(signal.metadata.get("source") or "").lower()
        return signal.method == "external" and any(word in source for word in self.tool)


def is_asked_for(each: Published, shape: ScoreShape) -> bool:
    """Whether the signal can change what is in the tool: final, and more than a measurement."""
    header = each.header
    if not header.final or header.outcome == "measured":
        return False
    if each.subject.scope == "session" and not shape.takes_sessions:
        return False
    return shape.evaluators is None or header.evaluator in shape.evaluators


def score_of(each: Published, shape: ScoreShape) -> WrittenScore | None:
    """The score in a signal; None: the tool has no place for it.

    It is the tool's own, or an earlier version wrote it, which did not say where its session begins and ends.

    Raises Undecodable: it is not a signal.
    """
    signal = decode_signal(each.json)
    subject = _subject(signal, shape)
    if subject is None or shape.is_of_the_tool(signal):
        return None
    own = signal.trace_id if signal.scope == "trace" else signal.session_id
    error = signal.error.type if signal.error is not None and shape.takes_errors else None
    return WrittenScore(
        position=each.position,
        key=key_of(signal.service, signal.scope, own or "", signal.evaluator),
        subject=subject,
        signal=replace(signal, explanation=None, metadata={}),
        value=signal.score if signal.outcome == "scored" else None,
        passed=signal.success if signal.outcome == "scored" else None,
        comment=(signal.explanation or "")[: shape.explanation] or None,
        metadata=_metadata(signal, shape),
        error=error if signal.outcome == "failed" else None,
    )


def _subject(signal: Signal, shape: ScoreShape) -> WrittenSubject | None:
    if signal.scope == "trace":
        return None if signal.trace_id is None else WrittenSubject("trace", signal.trace_id)
    if signal.session_source in shape.sessions and shape.hangs_on == "session":
        return WrittenSubject("session", signal.session_id)
    if signal.traces is None:
        return None
    is_own = signal.session_source in shape.sessions
    return WrittenSubject("trace", signal.traces.first if is_own else signal.traces.newest)


def _metadata(signal: Signal, shape: ScoreShape) -> dict[str, str]:
    """Never the signal's own metadata, which holds content."""
    found = {
        "spanwise.id": signal.id,
        "spanwise.revision": str(signal.revision),
        "spanwise.method": signal.method,
        "spanwise.evaluator_version": signal.evaluator_version,
    }
    if signal.agent_version is not None:
        found["spanwise.agent_version"] = signal.agent_version
    if shape.page is not None:
        found["spanwise.page"] = _page(signal, shape.page)
    return found


def _page(signal: Signal, page: str) -> str:
    if signal.scope == "trace":
        return f"{page}/trace?{urlencode({'id': signal.trace_id or ''})}"
    return f"{page}/session?{urlencode({'id': signal.session_id, 'service': signal.service})}"
