"""Parts of the records of topic `traces`: each reader decodes the kinds and fields that it uses, never the raw spans.

Every decoder here raises UnknownKind for a record that a newer version wrote, and Undecodable for bytes that are not
a record of `traces`.
"""

from __future__ import annotations

from typing import Any, TypeVar, Union, cast

import msgspec

from collector.records.codec import decode, encode, kinds_of
from collector.records.traces import (
    PackedTraceRecord,
    RunawayRecord,
    RunRecord,
    SessionRecord,
    TraceRecord,
    TracesTopic,
    VerdictRecord,
    WorkRecord,
)
from evaluators.model import Tokens, Trace

_T = TypeVar("_T")


class Unread(msgspec.Struct, frozen=True):
    """A record of a known kind that the reader does not use; none of its fields are decoded."""


def _view(*kinds: type[_T]) -> msgspec.msgpack.Decoder[_T | Unread]:
    """The decoder of these kinds; every other kind of the topic becomes `Unread`."""
    others = kinds_of(TracesTopic) - kinds_of(*kinds)
    unread = [msgspec.defstruct("Unread", (), bases=(Unread,), tag=each) for each in sorted(others)]
    return cast(Any, msgspec.msgpack.Decoder(Union[(*kinds, *unread)]))


# --- without spans ---------------------------------------------------------------------------------------------------


class _TraceWithoutSpans(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    trace: Trace
    revision: int
    seen: float
    session_changed: bool = False


_without_spans = _view(_TraceWithoutSpans, VerdictRecord)


def decode_without_spans(value: bytes) -> TraceRecord | VerdictRecord | Unread:
    """What scoring reads: the raw spans are skipped, not copied; `spans` is empty."""
    record = decode(_without_spans, value)
    if not isinstance(record, _TraceWithoutSpans):
        return record
    return TraceRecord(
        trace=record.trace,
        spans=(),
        revision=record.revision,
        seen=record.seen,
        session_changed=record.session_changed,
    )


_packed = msgspec.msgpack.Decoder(PackedTraceRecord)


def without_spans(value: bytes) -> bytes:
    """The record of a trace without its raw spans: what offline runs keep of it."""
    return encode(msgspec.structs.replace(decode(_packed, value), spans=()))


# --- the trace as it is ----------------------------------------------------------------------------------------------


class RawTrace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A `TraceRecord` whose trace is passed on without decoding it."""

    trace: msgspec.Raw


class JudgedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a trace that decide whether and where it is judged."""

    trace_id: str
    service: str
    session_id: str
    digest: str = ""
    unread: str | None = None
    start_time_unix_nano: int = 0
    model_calls: tuple[msgspec.Raw, ...] = ()
    tool_calls: tuple[msgspec.Raw, ...] = ()
    steps: tuple[msgspec.Raw, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether there is anything for a judge to read; scoring decides the other traces itself."""
        return self.unread is None and bool(self.model_calls or self.tool_calls or self.steps)


class TraceTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The question and the answer of a trace."""

    input: str | None = None
    output: str | None = None


_raw = _view(RawTrace, VerdictRecord, SessionRecord)
_judged = msgspec.msgpack.Decoder(JudgedTrace)
_texts = msgspec.msgpack.Decoder(TraceTexts)


def decode_raw_trace(value: bytes) -> RawTrace | VerdictRecord | SessionRecord | Unread:
    """What judging reads."""
    return decode(_raw, value)


def decode_judged_trace(raw: msgspec.Raw) -> JudgedTrace:
    """The fields of a raw trace that judging reads itself.

    Raises:
        Undecodable: not a trace.
    """
    return decode(_judged, raw)


def decode_texts(raw: msgspec.Raw) -> TraceTexts:
    """The texts of a raw trace.

    Raises:
        Undecodable: not a trace.
    """
    return decode(_texts, raw)


# --- what lists show -------------------------------------------------------------------------------------------------


class TraceHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of `Trace` that lists of the API show."""

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


class ListedTrace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A `TraceRecord` with the fields that lists show."""

    trace: TraceHeader
    revision: int
    seen: float


_listed = _view(ListedTrace, SessionRecord)


def decode_listed_trace(value: bytes) -> ListedTrace | SessionRecord | Unread:
    """What the API's index reads."""
    return decode(_listed, value)


# --- what metrics count ----------------------------------------------------------------------------------------------


class TraceUsage(msgspec.Struct, frozen=True):
    """The fields of `Trace` that metrics count."""

    trace_id: str
    service: str
    agent: str
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    cost_usd: float | None = None
    tokens: Tokens = Tokens()

    @property
    def duration(self) -> float:
        """Seconds; 0 when clocks ran backwards."""
        return max(0, self.end_time_unix_nano - self.start_time_unix_nano) / 1e9


class CountedTrace(msgspec.Struct, frozen=True, tag="trace"):
    """A `TraceRecord` with the fields that metrics count."""

    trace: TraceUsage
    revision: int


_counted = _view(CountedTrace, RunRecord)


def decode_counted_trace(value: bytes) -> CountedTrace | RunRecord | Unread:
    """What the metrics about agents read."""
    return decode(_counted, value)


# --- what offline runs collect ---------------------------------------------------------------------------------------

_reports = _view(VerdictRecord, SessionRecord, RunRecord)


def decode_report(value: bytes) -> VerdictRecord | SessionRecord | RunRecord | Unread:
    """What was said about a session: offline runs collect it."""
    return decode(_reports, value)


# --- what is ranked --------------------------------------------------------------------------------------------------


_work = _view(WorkRecord, RunawayRecord)


def decode_work(value: bytes) -> WorkRecord | RunawayRecord | Unread:
    """What ranks sessions among earlier ones, and traces among those before them."""
    return decode(_work, value)
