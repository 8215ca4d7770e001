"""What decides whether a trace is forwarded, as forwarding reads topic `traces`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from collector.records.codec import decode
from collector.records.keeping import BroadcastRecord, ClosedTrace, KeepingRecord, session_of
from collector.records.span_refs import Piece
from collector.records.trace_views import Unread, view
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

    def closed(
        self, *, key: bytes, offset: int, randomness: Callable[[bytes], int], failed: bool
    ) -> ClosedTrace:
        """`key`: of its record; `randomness`: of its id; `failed`: a score did not pass."""
        trace_id = bytes.fromhex(self.trace_id)
        duration = max(0, self.end_time_unix_nano - self.start_time_unix_nano) / 1e9
        return ClosedTrace(
            trace_id=trace_id,
            offset=offset,
            service=self.service,
            agent=self.agent,
            version=self.agent_version,
            session=session_of(key),
            duration=duration,  # 0 when clocks ran backwards
            randomness=randomness(trace_id),
            failed=failed or self.status == "error",
            is_other=not (self.agents or self.model_calls or self.tool_calls or self.steps),
        )


class SentTrace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A `TraceRecord` with what decides, and its spans."""

    trace: KeptFields
    spans: tuple[Piece, ...]


class SessionStanding(msgspec.Struct, frozen=True, kw_only=True, tag="work"):
    """A `WorkRecord` with whether the session fails."""

    service: str
    session_id: str
    failed: bool = False


_sent = view(
    SentTrace, VerdictRecord, RunawayRecord, SessionStanding, KeepingRecord, BroadcastRecord
)


def decode_sent(
    value: bytes,
) -> (
    SentTrace
    | VerdictRecord
    | RunawayRecord
    | SessionStanding
    | KeepingRecord
    | BroadcastRecord
    | Unread
):
    return decode(_sent, value)
