"""Signals to score a test with: real bytes and headers, as scoring writes them."""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from collector.log.port import SIGNALS, Headers, New, Record
from collector.records.cloud_events import FIRST, START
from collector.records.signal import Coverage, Signal, decode_signal, rfc3339
from collector.records.signal_batch import Published, signals_in
from evaluators.model import Failure

BASE = 1_700_000_000.0


def hex_of(text: str, length: int = 32) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def signal(
    session: str = "s-1",
    trace: str | None = "t-1",
    *,
    at: float = BASE,
    score: float | None = 0.75,
    **fields: Any,
) -> Signal:
    """A scored trace signal of `tool_correctness`; with `trace` None a session signal. `fields` override."""
    scope = "session" if trace is None else "trace"
    defaults: dict[str, Any] = {
        "time": rfc3339(at),
        "scope": scope,
        "service": "support-bot",
        "agent": "planner",
        "agent_version": "1.4.2",
        "trace_id": None if trace is None else hex_of(trace),
        "span_id": None if trace is None else hex_of(trace, 16),
        "session_id": session,
        "session_source": "session.id",
        "evaluator": "tool_correctness" if trace else "agent_reliability",
        "evaluator_version": "1",
        "method": "deterministic" if trace else "formula",
        "outcome": "scored",
        "score": score,
        "threshold": 0.5,
        "success": None if score is None else score >= 0.5,
        "explanation": "3 of 4 calls were right",
    }
    merged = defaults | fields
    merged.setdefault("id", hex_of(repr(sorted(merged.items()))))
    return Signal(**merged)


def failed(session: str = "s-1", trace: str | None = "t-1", **fields: Any) -> Signal:
    error = Failure(type="timeout", message="no verdict in 30 s")
    return signal(session, trace, score=None, outcome="failed", success=None, error=error, **fields)


def skipped(session: str = "s-1", trace: str | None = "t-1", **fields: Any) -> Signal:
    fields.setdefault("reason", "budget")
    return signal(session, trace, score=None, outcome="skipped", success=None, **fields)


def covered(expected: int, present: int) -> Coverage:
    return Coverage(expected=expected, present=present)


def encode(what: Signal) -> bytes:
    return msgspec.json.encode(what)


def headers(what: Signal, *, first: bool = True, start: int = 0) -> Headers:
    trace = what.trace_id
    subject = f"trace/{trace}" if what.scope == "trace" else f"session/{what.session_id}"
    found = [
        ("content-type", b"application/json"),
        ("ce_specversion", b"1.0"),
        ("ce_id", what.id.encode()),
        ("ce_source", f"/agents/{what.service}".encode()),
        ("ce_type", f"spanwise.signal.{what.scope}.v1".encode()),
        ("ce_time", what.time.encode()),
        ("ce_subject", subject.encode()),
    ]
    if trace is not None:
        found.append(("traceparent", f"00-{trace}-{what.span_id}-01".encode()))
    if first and what.final:
        found.append(FIRST)
    if start:
        found.append((START, str(start).encode()))
    return tuple(found)


def new(what: Signal, *, first: bool = True, partition: int | None = None, start: int = 0) -> New:
    """The record of topic `signals`."""
    return New(
        topic=SIGNALS,
        key=what.session_id.encode(),
        value=encode(what),
        partition=partition,
        headers=headers(what, first=first, start=start),
    )


def published_in(records: Iterable[Record]) -> list[Published]:
    """The signals of all these records, in order."""
    return [each for record in records for each in signals_in(record)]


def decoded_in(records: Iterable[Record]) -> list[Signal]:
    """The same, with every field."""
    return [decode_signal(each.json) for each in published_in(records)]


def jsons_in(records: Iterable[Record]) -> list[bytes]:
    """The same, as they are published."""
    return [each.json for each in published_in(records)]
