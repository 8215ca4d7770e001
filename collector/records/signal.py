"""The signal: its fields, its id, and its bytes.

Its id is a pure function of what was scored, so that a repeat is the same signal. As bytes it is JSON of at most
64 KiB.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from collector.base.errors import Undecodable
from collector.base.printable import escape_json_bytes
from collector.otlp.names import is_shown, name_shown
from collector.records.codec import decode
from evaluators.digest import canonical
from evaluators.judge_use import JudgeUse
from evaluators.model import Closed, Failure, Method, Outcome, Scope, SessionClosed, State

SCHEMA_VERSION = 1
COMPARED = frozenset({"agent_reliability", "agent_consistency", "work_baseline", "task_agreement"})
"""Session evaluators whose windows are kept for each version of the agent, too."""
HEADLINES = {"agent_reliability": "reliability", "agent_consistency": "consistency"}
"""The session evaluators that represent an agent, with the names of their scores in lists."""
_MODULUS = 1 << 256  # terms of a window are SHA-256 digests, added modulo 2^256
_encode = msgspec.json.Encoder().encode
"""Of lists of texts, truth values and None the bytes are those of `canonical`, at a tenth of the cost."""
MAX_BYTES = 64 * 1024
"""Of one signal: far below what any broker or backend refuses (Kafka's default is 1 MB)."""
_TEXTS = (1024, 64)
"""Characters to which texts of a signal that is too large are cut, one step after the other."""
_LISTS = (64, 8, 0)
"""Members, the last, of each list and mapping of its metadata that are left after that."""


Sample = Literal["base", "more", "random"]
"""`base`: by `judge.sample`, or nothing is sampled; `more`: beyond it (`judge.more`); `random`: `base`, of before."""


class Sampling(NamedTuple):
    """By what a subject was chosen to be judged, and with what probability at its time."""

    sample: Sample
    probability: float


ALWAYS = Sampling("base", 1.0)


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Of the scores that a session formula reads: how many were expected, how many are present."""

    expected: int
    present: int


class SessionTraces(msgspec.Struct, frozen=True, kw_only=True):
    """The trace that began a session, and the newest that its scores are about."""

    first: str
    newest: str


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One score, or why there is none. Field order is the order of the published JSON."""

    id: str
    schema_version: int = SCHEMA_VERSION
    time: str
    scope: Scope
    service: str
    agent: str
    agent_version: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    session_id: str
    session_source: str
    traces: SessionTraces | None = None  # of a session
    started: str | None = None  # the start of the subject's first span: the same in every revision
    evaluator: str
    evaluator_version: str
    method: Method
    outcome: State
    reason: str | None = None
    score: float | None = None
    threshold: float | None = None
    success: bool | None = None
    assumed: float | None = None
    final: bool = True
    revision: int = 0
    explanation: str | None = None
    metadata: Mapping[str, Any] = {}
    evidence: tuple[str, ...] = ()
    contradiction: bool = False
    truncated: str | None = None
    coverage: Coverage | None = None
    closed: Literal[Closed, SessionClosed] | None = None
    sample: Sample = "base"
    sample_probability: float = 1.0
    judge: JudgeUse | None = None
    error: Failure | None = None


def trace_input_digest(digest: str, compared: Iterable[str] = (), expectation: Any = None) -> str:
    parts = [digest, list(compared), expectation]
    value = _encode(parts) if expectation is None else canonical(parts)
    return hashlib.sha256(value).hexdigest()


def turn_term(trace_id: str, digest: str, signal_ids: Iterable[str]) -> int:
    text = ",".join([trace_id, digest, *sorted(signal_ids)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def session_input_digest(terms: Iterable[int]) -> str:
    """Of a session evaluator's input: a sum, so that no order matters and it can be kept up to date term by term."""
    return f"{sum(terms) % _MODULUS:064x}"


def signal_id(
    *, scope: Scope, service: str, subject: str, outcome: Outcome, input_digest: str
) -> str:
    """The first 32 hex of SHA-256 over the subject, the evaluator with its options, and the input digest."""
    parts = [
        scope,
        service,
        subject,
        outcome.evaluator,
        outcome.version,
        outcome.options_digest,
        outcome.method,
        outcome.final,
        input_digest,
    ]
    return hashlib.sha256(_encode(parts)).hexdigest()[:32]


@lru_cache(maxsize=256)
def rfc3339(time: float) -> str:
    """A log time as the signal prints it, microseconds, UTC."""
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    )


def encode_signal(signal: Signal) -> bytes:
    """The published JSON, fields in the order of `Signal`, at most 64 KiB: explanations are cut first."""
    value = escape_json_bytes(_encode(signal))
    for name, cut in _CUTS:
        if len(value) <= MAX_BYTES:
            return value
        smaller = cut(signal)
        if smaller != signal:
            signal = _with_truncated(smaller, name)
            value = escape_json_bytes(_encode(signal))
    return value


decode_signal = partial(decode, msgspec.json.Decoder(Signal))
"""The signal in a record's value; fields that a newer version added are ignored. Raises Undecodable: not a signal."""


@lru_cache(maxsize=256)
def unix_seconds(time: str) -> float:
    """A signal's `time` as unix seconds. Raises Undecodable: not RFC 3339."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError as error:
        raise Undecodable(f"time is not RFC 3339: {time}") from error


def redacted(signal: Signal) -> Signal:
    """The signal without explanation, error text and the texts of its metadata (`redaction.content: drop`).

    Keys of its metadata stay where they look like names: those of a tool's arguments come from the trace.
    """
    error = signal.error and Failure(type=signal.error.type, message="")
    metadata = cast(Mapping[str, Any], _without_texts(signal.metadata))
    return replace(signal, explanation=None, metadata=metadata, error=error)


def _without_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {name_shown(key): _without_texts(each) for key, each in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_without_texts(each) for each in cast(list[Any], value)]
    return value if is_shown(value) else None


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        return {key: _map_texts(each, change) for key, each in fields.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(each, change) for each in cast(list[Any], value)]
    return value


def _with_truncated(signal: Signal, name: str) -> Signal:
    names = signal.truncated.split(", ") if signal.truncated else []
    return signal if name in names else replace(signal, truncated=", ".join([*names, name]))


def _explanation(length: int) -> Callable[[Signal], Signal]:
    return lambda signal: replace(signal, explanation=(signal.explanation or "")[:length] or None)


def _metadata_texts(length: int) -> Callable[[Signal], Signal]:
    return lambda signal: replace(
        signal, metadata=_map_texts(signal.metadata, lambda text: text[:length])
    )


def _metadata_fields(length: int) -> Callable[[Signal], Signal]:
    return lambda signal: replace(
        signal, metadata={key: _shorter(value, length) for key, value in signal.metadata.items()}
    )


def _shorter(value: Any, length: int) -> Any:
    """The first `length` members of a list or an object; the newest of a session are last, so it is the tail."""
    if isinstance(value, Mapping):
        fields = list(cast(Mapping[str, Any], value).items())
        return dict(fields[len(fields) - min(length, len(fields)) :])
    if isinstance(value, (list, tuple)):
        members = list(cast(list[Any], value))
        return members[len(members) - min(length, len(members)) :]
    return value


def _rest(signal: Signal) -> Signal:
    error = signal.error and Failure(
        type=signal.error.type[:64], message=signal.error.message[:1024]
    )
    return replace(signal, error=error, evidence=signal.evidence[:64])


_CUTS: tuple[tuple[str, Callable[[Signal], Signal]], ...] = (
    *(("explanation", _explanation(length)) for length in _TEXTS),
    *(("metadata", _metadata_texts(length)) for length in _TEXTS),
    *(("metadata", _metadata_fields(length)) for length in _LISTS),
    ("evidence", _rest),
    ("metadata", lambda signal: replace(signal, metadata={})),
)
