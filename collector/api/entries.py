"""What the index keeps, and the few fields it reads of the records on `traces` and `signals`.

Reading only what is needed keeps the cost per record low: raw spans and attributes are never decoded here.
"""

from __future__ import annotations

import msgspec

from collector.errors import Undecodable
from evaluators.model import Trace

EXCERPT = 2048
"""Characters of an input or output that lists and the session view show."""


# --- what is read ----------------------------------------------------------------------------------------------------


class TraceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of `Trace` that lists show."""

    trace_id: str
    service: str
    agent: str
    agent_version: str | None = None
    session_id: str
    session_source: str
    input: str | None = None
    output: str | None = None
    status: str = "unset"
    error: str | None = None
    spans: int = 0
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0


class TraceSeen(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A closed trace."""

    trace: TraceHeader
    revision: int
    seen: float


class VerdictSeen(msgspec.Struct, frozen=True, kw_only=True, tag="verdict"):
    """A verdict: its signals follow on `signals`."""


class SessionSeen(msgspec.Struct, frozen=True, kw_only=True, tag="session"):
    """A closed session."""

    service: str
    session_id: str
    closed: str


class RunSeen(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """A task run: only gauges are made of it."""


class SignalHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of `Signal` that the index orders by."""

    id: str
    time: str
    scope: str
    service: str
    agent: str
    agent_version: str | None = None
    trace_id: str | None = None
    session_id: str
    session_source: str
    evaluator: str
    method: str
    outcome: str
    score: float | None = None
    final: bool = True
    revision: int = 0
    coverage: dict[str, int] | None = None


TracesSeen = TraceSeen | VerdictSeen | SessionSeen | RunSeen


# --- what is kept ----------------------------------------------------------------------------------------------------


class TraceEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A trace in the index; `offset` None: only its signals have come so far."""

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
    """Offset of its newest record on `traces`: what is read again below it changes nothing."""


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
    """A signal in the index: where it stands in the order of arrival, which one it is, its JSON as it came."""

    sequence: int
    revision: int
    partition: int
    offset: int
    evaluator: str
    session_id: str
    trace_id: str | None
    json: bytes


_traces = msgspec.msgpack.Decoder(TracesSeen)
_signal = msgspec.json.Decoder(SignalHeader)
_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode


def read_traces(value: bytes) -> TracesSeen:
    """A record of topic `traces`.

    Raises:
        Undecodable: Not one.
    """
    try:
        return _traces.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error


def read_signal(value: bytes) -> SignalHeader:
    """A record of topic `signals`.

    Raises:
        Undecodable: Not one.
    """
    try:
        return _signal.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error


def excerpt(header: TraceHeader, *, content: bool) -> TraceHeader:
    """The header with its texts cut to `EXCERPT`, or without them."""
    return msgspec.structs.replace(
        header,
        input=header.input[:EXCERPT] if content and header.input else None,
        output=header.output[:EXCERPT] if content and header.output else None,
        error=header.error[:EXCERPT] if content and header.error else None,
    )


def as_trace(header: TraceHeader) -> Trace:
    """What is left of a trace whose record has expired from the log."""
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
