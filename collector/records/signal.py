"""The signal: its fields and its id. Pure functions of what was scored, so that a repeat is the same signal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

import msgspec

from evaluators.digest import canonical
from evaluators.model import Closed, Method, Outcome, Scope, SessionClosed, State

SCHEMA_VERSION = 1
HEADLINES = {"agent_reliability": "reliability", "agent_consistency": "consistency"}
"""The session evaluators that stand for an agent, with the names of their scores in lists."""
_MODULUS = 1 << 256
_encode = msgspec.json.Encoder().encode


class JudgeCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict cost."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cached: bool


class SignalError(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no score."""

    type: str
    message: str


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """Of the scores that a session formula reads: how many were expected, how many are present."""

    expected: int
    present: int


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
    sample: Literal["random"] = "random"
    sample_probability: float = 1.0
    judge: JudgeCost | None = None
    error: SignalError | None = None


def trace_input_digest(digest: str, compared: Iterable[str] = (), expectation: Any = None) -> str:
    """Of a trace evaluator's input: the trace, the traces it was compared with, the expectation used."""
    parts = [digest, list(compared), expectation]
    value = _canonical_texts(parts) if expectation is None else canonical(parts)
    return hashlib.sha256(value).hexdigest()


def turn_term(trace_id: str, digest: str, signal_ids: Iterable[str]) -> int:
    """A trace's summand in its session's input digest."""
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
    return hashlib.sha256(_canonical_texts(parts)).hexdigest()[:32]


def _canonical_texts(value: list[Any]) -> bytes:
    """`canonical` of lists of texts, truth values and None: the same bytes at a tenth of the cost."""
    return _encode(value)


@lru_cache(maxsize=256)
def rfc3339(time: float) -> str:
    """A log time as the signal prints it, microseconds, UTC."""
    return (
        datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    )
