"""The entries of the index."""

from __future__ import annotations

import msgspec

from collector.records.trace_views import TraceHeader
from evaluators.model import Trace

EXCERPT = 2048
"""Characters of an input or output that lists and the session view show."""


class TraceEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A trace in the index; `offset` None: only its signals have arrived so far."""

    header: TraceHeader
    session: bytes
    revision: int = 0
    partition: int = 0
    offset: int | None = None


class SessionEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A session in the index. Times are log time in microseconds; scores are those of its newest signals."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None = None
    started: int | None = None
    last: int = 0
    traces: int = 0
    reliability: float | None = None
    consistency: float | None = None
    coverage: dict[str, int] | None = None
    closed: str | None = None
    newest: int = -1
    """Offset of its newest record on `traces`: records below it are read again and change nothing."""


class AgentEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Sums over an agent's sessions in the index; scores in whole billionths, so that taking one out is exact."""

    service: str
    agent: str
    agent_version: str | None = None
    sessions: int = 0
    traces: int = 0
    last: int = 0
    reliability_sum: int = 0
    reliability_count: int = 0
    consistency_sum: int = 0
    consistency_count: int = 0


class SignalEntry(msgspec.Struct, kw_only=True, array_like=True):
    """A signal in the index: its place in the order of arrival, its identity, and its JSON as it arrived."""

    sequence: int
    revision: int
    partition: int
    offset: int
    evaluator: str
    session_id: str
    trace_id: str | None
    json: bytes


_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode


def excerpt(header: TraceHeader, *, content: bool) -> TraceHeader:
    """The header with its texts cut to `EXCERPT`, or without them."""
    return msgspec.structs.replace(
        header,
        input=header.input[:EXCERPT] if content and header.input else None,
        output=header.output[:EXCERPT] if content and header.output else None,
        error=header.error[:EXCERPT] if content and header.error else None,
    )


def as_trace(header: TraceHeader) -> Trace:
    """A trace whose record has expired from the log, with the fields that the index has of it."""
    return Trace(
        trace_id=header.trace_id,
        service=header.service,
        agent=header.agent,
        agent_version=header.agent_version,
        session_id=header.session_id,
        session_source=header.session_source,
        input=header.input,
        output=header.output,
        status="error" if header.status == "error" else "unset",
        error=header.error,
        spans=header.spans,
        truncated=True,
        start_time_unix_nano=header.start_time_unix_nano,
        end_time_unix_nano=header.end_time_unix_nano,
    )
