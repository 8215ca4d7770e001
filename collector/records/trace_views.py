"""Parts of the records of topic `traces`: each reader decodes the kinds and fields that it uses, never the raw spans.

Every decoder here raises UnknownKind for a record that a newer version wrote, and Undecodable for bytes that are not
a record of `traces`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, TypeVar, Union, cast

import msgspec

from collector.base.errors import Undecodable
from collector.log.port import Record
from collector.records.codec import decode, encode, kinds_of
from collector.records.keeping import Decision
from collector.records.more import AskRecord, MoreRecord
from collector.records.subject import Subject, shared_fields
from collector.records.trace_outcomes import TraceOutcomes, outcomes_of
from collector.records.trace_summary import (
    Summariser,
    TraceSummary,
    outline_of,
    packed_outline,
    unpacked,
)
from collector.records.traces import (
    RunawayRecord,
    RunRecord,
    SessionRecord,
    TracesTopic,
    VerdictRecord,
    WorkRecord,
)
from evaluators.model import Closed, Tokens, Trace

_T = TypeVar("_T")


class Unread(msgspec.Struct, frozen=True):
    """A record of a known kind that the reader does not use; none of its fields are decoded."""


def view(*kinds: type[_T]) -> msgspec.msgpack.Decoder[_T | Unread]:
    """Decodes these kinds of `TracesTopic`, or the same with fewer fields; the others are `Unread`."""
    others = kinds_of(TracesTopic) - kinds_of(*kinds)
    unread = [msgspec.defstruct("Unread", (), bases=(Unread,), tag=each) for each in sorted(others)]
    return cast(Any, msgspec.msgpack.Decoder(Union[(*kinds, *unread)]))


# --- what scoring reads ----------------------------------------------------------------------------------------------


class SummarisedTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A trace record as scoring reads it."""

    summary: TraceSummary
    outcomes: TraceOutcomes | None  # None: the record holds none, as one that another version wrote
    revision: int
    seen: float


class _WithPacked(msgspec.Struct, frozen=True, kw_only=True, tag="trace", omit_defaults=True):
    trace: msgspec.Raw
    revision: int
    seen: float
    randomness: int | None = None


_scored = view(_WithPacked, VerdictRecord, MoreRecord)


def decode_summarised(
    record: Record, summariser: Summariser
) -> SummarisedTrace | VerdictRecord | MoreRecord | Unread:
    """What scoring reads: the trace stays packed, unless its record lacks a summary by the rules of today."""
    outline = outline_of(record.headers)
    if outline is not None and outline.summary.rules == summariser.rules:
        summary, revision, seen = outline.summary, outline.revision, outline.seen
    else:
        found = decode(_scored, record.value)
        if not isinstance(found, _WithPacked):
            return found
        summary = summariser.summary(unpacked(found.trace))
        revision, seen = found.revision, found.seen
    outcomes = outcomes_of(record.headers)
    return SummarisedTrace(summary=summary, outcomes=outcomes, revision=revision, seen=seen)


_with_packed = msgspec.msgpack.Decoder(_WithPacked)


def without_spans(value: bytes) -> bytes:
    """The record of a trace without its raw spans, which are skipped: what offline runs keep of it."""
    return encode(decode(_with_packed, value))


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
    is_part: bool = False

    @property
    def is_judged(self) -> bool:
        """Whether there is anything for a judge to read; scoring decides the other traces itself."""
        acted = bool(self.model_calls or self.tool_calls or self.steps)
        return acted and self.unread is None and not self.is_part


class TraceTexts(msgspec.Struct, frozen=True, kw_only=True):
    """The question and the answer of a trace."""

    input: str | None = None
    output: str | None = None


decode_raw_trace = partial(decode, view(RawTrace, VerdictRecord, SessionRecord, AskRecord))
decode_judged_trace = partial(decode, msgspec.msgpack.Decoder(JudgedTrace))
"""The fields of a raw trace that judging reads itself. Raises Undecodable: not a trace."""
decode_texts = partial(decode, msgspec.msgpack.Decoder(TraceTexts))
"""The texts of a raw trace. Raises Undecodable: not a trace."""


# --- what lists show -------------------------------------------------------------------------------------------------


class CalledTool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of `Trace.tool_calls`; in the index one for each tool, without the text of an error."""

    name: str
    error: str | None = None
    rejected: str | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None and self.rejected is None


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
    cost_usd: float | None = None
    tokens: Tokens = Tokens()
    gaps: tuple[str, ...] = ()
    user_id: str | None = None
    attributes: Mapping[str, str] = {}
    task_id: str | None = None
    models: tuple[str, ...] = ()
    tool_calls: tuple[CalledTool, ...] = ()
    is_part: bool = False
    root_span_id: str | None = None
    closed: Closed = "root_ended"
    seen: float = 0.0
    """Not of `Trace`: when its newest span arrived, as whoever keeps it noted."""

    @property
    def seconds(self) -> float:
        """From the first start to the last end; 0 when clocks ran backwards."""
        return max(0, self.end_time_unix_nano - self.start_time_unix_nano) / 1e9


def trace_subject(trace: Trace | TraceHeader, **known: Any) -> Subject:
    """The trace as what a signal is about; `known`: the fields that it lacks, `revision` at least."""
    return Subject(
        scope="trace",
        span_id=trace.root_span_id,
        start=trace.start_time_unix_nano,
        **shared_fields(trace, Subject) | known,
    )


class ListedTrace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A `TraceRecord` with the fields that lists show."""

    trace: TraceHeader
    revision: int
    seen: float


class DecidedTraces(msgspec.Struct, frozen=True, kw_only=True, tag="keeping"):
    """A `KeepingRecord` with what was decided."""

    decisions: tuple[Decision, ...] = ()


decode_listed_trace = partial(decode, view(ListedTrace, SessionRecord, DecidedTraces))


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
    status: str = "unset"

    @property
    def duration(self) -> float:
        """Seconds; 0 when clocks ran backwards."""
        return max(0, self.end_time_unix_nano - self.start_time_unix_nano) / 1e9


class CountedTrace(msgspec.Struct, frozen=True, tag="trace"):
    """A `TraceRecord` with the fields that metrics count."""

    trace: TraceUsage
    revision: int


decode_counted_trace = partial(decode, view(CountedTrace, RunRecord))


class _CountedTurn(msgspec.Struct, frozen=True):
    trace_id: str
    start_time_unix_nano: int
    cost_usd: float | None = None
    tokens: Tokens = Tokens()
    cancelled: bool = False


class _CountedSummary(msgspec.Struct, frozen=True):
    turn: _CountedTurn
    service: str
    agent: str
    end_time_unix_nano: int = 0


class _CountedOutline(msgspec.Struct, frozen=True, array_like=True):
    summary: _CountedSummary
    revision: int


_counted_outline = msgspec.msgpack.Decoder(_CountedOutline)


def counted(record: Record) -> CountedTrace | RunRecord | Unread:
    packed = packed_outline(record.headers)
    try:
        outline = None if packed is None else decode(_counted_outline, packed)
    except Undecodable:
        outline = None
    if outline is None:
        return decode_counted_trace(record.value)
    summary, turn = outline.summary, outline.summary.turn
    usage = TraceUsage(
        trace_id=turn.trace_id,
        service=summary.service,
        agent=summary.agent,
        start_time_unix_nano=turn.start_time_unix_nano,
        end_time_unix_nano=summary.end_time_unix_nano,
        cost_usd=turn.cost_usd,
        tokens=turn.tokens,
        status="cancelled" if turn.cancelled else "unset",
    )
    return CountedTrace(trace=usage, revision=outline.revision)


# --- what offline runs collect ---------------------------------------------------------------------------------------

decode_report = partial(decode, view(VerdictRecord, SessionRecord, RunRecord))

# --- what is ranked --------------------------------------------------------------------------------------------------

decode_work = partial(decode, view(WorkRecord, RunawayRecord))


def work_in(record: Record) -> WorkRecord | RunawayRecord | Unread:
    """What ranks sessions; a trace is passed over without looking at it where its header says what it is."""
    return Unread() if packed_outline(record.headers) is not None else decode_work(record.value)
