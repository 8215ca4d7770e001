"""What scoring needs of a trace, made by the worker that read it, so that no one else decodes the whole trace.

    worker: Trace -> summary, outcomes, packed trace -> record: those in headers, this in the value -> scoring

To look for a field in the record of a whole trace is to walk all of it, which is why the summary is a header. A record
without a summary (of an older version, of a trace that no worker could read, or with no room for it) and one
whose summary was made by other rules are decoded and summarised again: no result depends on who made the summary.
"""

import hashlib
from collections.abc import Collection

import msgspec

from collector.base.errors import Undecodable
from collector.log.port import Headers
from collector.records.codec import NOT_A_RECORD, encode
from collector.records.subject import shared_fields
from collector.records.trace_outcomes import OUTCOMES
from evaluators.content import has_text
from evaluators.formulas.agreement import writes
from evaluators.formulas.trace_calls import first_model
from evaluators.formulas.work import work_of
from evaluators.matching.final_answer import gives_up, lacks_answer
from evaluators.matching.repeats import call_counts
from evaluators.matching.tool_uses import tool_uses
from evaluators.model import Closed, Trace, Turn
from evaluators.trace.runaway import model_calls

HEADER = "spanwise_trace"  # of a trace record: its outline
VERSION = 5  # of the functions that make a turn: higher whenever one of them says something else of the same trace
_encoder = msgspec.msgpack.Encoder()
_trace = msgspec.msgpack.Decoder(Trace)


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    rules: str  # by which the turn was made (`Summariser.rules`)
    turn: Turn  # without scores
    service: str
    agent: str
    agent_version: str | None = None
    session_id: str
    session_source: str
    span_id: str | None = None  # of the root
    closed: Closed = "root_ended"
    task_id: str | None = None
    task_success: bool | None = None
    unread: str | None = None
    end_time_unix_nano: int = 0

    @property
    def is_turn(self) -> bool:
        return bool(self.turn.model_calls or self.turn.tool_calls)


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """What is in the header of a trace record: readers that need no more leave the record alone."""

    summary: TraceSummary
    revision: int
    seen: float


class _PackedOutline(msgspec.Struct, array_like=True):
    summary: msgspec.Raw
    revision: int
    seen: float


_outline = msgspec.msgpack.Decoder(Outline)


def headers_of(summary: bytes, outcomes: bytes, *, revision: int, seen: float) -> Headers:
    outline = _PackedOutline(msgspec.Raw(summary), revision, seen)
    headers = ((HEADER, encode(outline)),) if summary else ()
    return (*headers, (OUTCOMES, outcomes)) if outcomes else headers


def packed_outline(headers: Headers) -> bytes | None:
    """The outline among the headers of a record; None: it is not a trace, or has none."""
    return next((value for name, value in headers if name == HEADER), None)


def outline_of(headers: Headers) -> Outline | None:
    """The same, decoded; None also where it cannot be."""
    packed = packed_outline(headers)
    try:
        return None if packed is None else _outline.decode(packed)
    except NOT_A_RECORD:
        return None


class Summariser:
    """Makes summaries. `read_only`: tools that change nothing (`tasks.read_only`)."""

    def __init__(self, read_only: Collection[str] = ()) -> None:
        self._read_only = frozenset(read_only)
        names = _encoder.encode((VERSION, sorted(self._read_only)))
        self.rules = hashlib.sha256(names).hexdigest()[:16]
        """Names everything but the trace that decides what a summary says."""

    def summary(self, trace: Trace) -> TraceSummary:
        return TraceSummary(
            rules=self.rules,
            turn=self._turn(trace),
            span_id=trace.root_span_id,
            **shared_fields(trace, TraceSummary),
        )

    def _turn(self, trace: Trace) -> Turn:
        calls = () if trace.is_part else trace.tool_calls
        tools = tool_uses(calls)
        return Turn(
            trace_id=trace.trace_id,
            start_time_unix_nano=trace.start_time_unix_nano,
            duration=trace.duration,
            digest=trace.digest,
            tokens=trace.tokens,
            cost_usd=trace.cost_usd,
            model_calls=0 if trace.is_part else model_calls(trace),
            tool_calls=len(calls),
            call_counts=call_counts(calls, tools),
            has_text=has_text(trace),
            work=work_of(trace),
            writes=writes(calls, self._read_only),
            model=first_model(trace),
            is_part=trace.is_part,
            tools=tools,
            model_failed=any(call.error is not None for call in trace.model_calls),
            lacks_answer=lacks_answer(trace),
            gave_up=gives_up(trace),
            cancelled=trace.status == "cancelled",
            ending=trace.model_calls[-1].ending if trace.model_calls else None,
        )


def packed_summary(summary: TraceSummary, room: int) -> bytes:
    """The msgpack of a summary; empty: it takes more than `room` bytes."""
    packed = encode(summary)
    return packed if len(packed) <= room else b""


def packed_trace(trace: Trace) -> bytes:
    return _encoder.encode(trace)


def unpacked(packed: bytes | msgspec.Raw) -> Trace:
    """The trace of its msgpack. Raises Undecodable: it is not one."""
    try:
        return _trace.decode(packed)
    except NOT_A_RECORD as error:
        raise Undecodable(str(error)) from error
