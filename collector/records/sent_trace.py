"""What decides whether a trace is forwarded, as forwarding reads topic `traces`."""

from collections.abc import Callable
from functools import partial

import msgspec

from collector.otlp.trace_state import BITS
from collector.records.codec import decode
from collector.records.keeping import BroadcastRecord, ClosedTrace, KeepingRecord, session_of
from collector.records.span_refs import Piece
from collector.records.trace_views import view
from collector.records.traces import RunawayRecord, VerdictRecord


class KeptFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of `Trace` that decide."""

    trace_id: str
    service: str
    agent: str
    agent_version: str | None = None
    agents: tuple[str, ...] = ()
    status: str = "unset"
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    root_span_id: str | None = None
    spans: int = 0  # how many it has
    model_calls: tuple[msgspec.Raw, ...] = ()
    tool_calls: tuple[msgspec.Raw, ...] = ()
    steps: tuple[msgspec.Raw, ...] = ()


class SentTrace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A `TraceRecord` with what decides, and its spans."""

    trace: KeptFields
    spans: tuple[Piece, ...] = ()  # without them where recordings are read
    randomness: int | None = None

    def closed(self, *, key: bytes, offset: int, failed: bool) -> ClosedTrace:
        """`key`, `offset`: of its record; `failed`: a score did not pass."""
        trace = self.trace
        trace_id = bytes.fromhex(trace.trace_id)
        of_id = int.from_bytes(trace_id[-BITS // 8 :])
        duration = max(0, trace.end_time_unix_nano - trace.start_time_unix_nano) / 1e9
        return ClosedTrace(
            trace_id=trace_id,
            offset=offset,
            service=trace.service,
            agent=trace.agent,
            version=trace.agent_version,
            session=session_of(key),
            duration=duration,  # 0 when clocks ran backwards
            randomness=of_id if self.randomness is None else self.randomness,
            failed=failed or trace.status == "error",
            is_other=not (trace.agents or trace.model_calls or trace.tool_calls or trace.steps),
        )


class SessionStanding(msgspec.Struct, frozen=True, kw_only=True, tag="work"):
    """A `WorkRecord` with whether the session fails."""

    service: str
    session_id: str
    failed: bool = False


_sent = view(
    SentTrace, VerdictRecord, RunawayRecord, SessionStanding, KeepingRecord, BroadcastRecord
)
decode_sent: Callable[[bytes], msgspec.Struct] = partial(decode, _sent)
"""One of these kinds, or `Unread`."""
