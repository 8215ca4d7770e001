"""What each topic holds.

    topic     key                      value
    spans     trace id, 16 bytes       an ExportTraceServiceRequest holding spans of that one trace
    closings  trace id, 16 bytes       Mark
    traces    session key              TraceRecord | VerdictRecord | SessionRecord | RunRecord
    sessions  session key (+ trace)    SessionHead | SessionTurn           (compacted)
    signals   session id               the signal's JSON (collector/records/signal.py), CloudEvents headers
    windows   label set, or task       owned by collector/signals          (compacted)

Values are msgpack, told apart by a tag. Fields are only ever added, each with a default.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from collector.errors import Undecodable
from evaluators.model import Closed, Outcome, Trace, Turn


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trace was closed: what arrives for it at or below `reach` is a re-read, above it is late."""

    trace_id: bytes
    reach: int
    """The last offset of the `spans` partition that the closing had seen."""
    revision: int
    session_key: bytes
    traces_partition: int
    traces_offset: int
    """Of the trace's newest record; -1: it could not be read, there is none."""
    closed_at: float
    """Log time."""
    local_root: bool = False
    rootless: bool = False
    """No root had come, not even a local one: late spans wait for `idle` again."""


class TraceRecord(msgspec.Struct, frozen=True, kw_only=True, tag="trace", omit_defaults=True):
    """A closed trace: normalised for scoring, raw for revision, replay and inspection."""

    trace: Trace
    spans: tuple[bytes, ...]
    """The raw pieces, each an ExportTraceServiceRequest, in arrival order."""
    revision: int
    seen: float
    """Log time at which the newest span was first seen: the signal's `time`."""
    session_changed: bool = False


class PackedTraceRecord(msgspec.Struct, frozen=True, kw_only=True, tag="trace", omit_defaults=True):
    """A `TraceRecord` to be written whose trace is msgpack already. The bytes are the same."""

    trace: msgspec.Raw
    spans: tuple[bytes, ...]
    revision: int
    seen: float
    session_changed: bool = False


class VerdictRecord(msgspec.Struct, frozen=True, kw_only=True, tag="verdict", omit_defaults=True):
    """What the judge said of a subject; the first one in the log wins."""

    scope: str
    service: str
    session_id: str
    subject: str
    """Trace id, or session id."""
    digest: str
    """What was judged: the trace's digest, or the session's input digest."""
    outcomes: tuple[Outcome, ...]
    calls: int = 0
    """Requests that were made and answered, for the budget."""
    cost_usd: float = 0.0


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, tag="session", omit_defaults=True):
    """A session closed; `traces` are the offsets of its newest trace records in this partition."""

    service: str
    session_id: str
    closed: Closed
    traces: tuple[int, ...]
    digest: str = ""
    """The input digest that a verdict about the session names."""
    due: tuple[str, ...] = ()
    """Judged session evaluators whose verdict is wanted."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, tag="run", omit_defaults=True):
    """A closed session was a run of a task (CONTRACT section 7). Written once its success can be told."""

    service: str
    session_id: str
    agent: str
    task_id: str
    success: bool | None
    """None: neither its spans nor `tasks.evaluator` say."""
    ended: float
    """Log time at which its newest span was first seen: the newest runs of a task count."""
    named_at: int = 0
    """Start (unix nanoseconds) of the trace that named the task: the order of runs in recordings."""


TracesTopic = TraceRecord | VerdictRecord | SessionRecord | RunRecord


class TaskSaid(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session's traces say of its task. Of two that speak, the one that started later is heard."""

    task_id: str | None = None
    named_at: int = 0
    """Start (unix nanoseconds) of the trace that named it."""
    named_by: str = ""
    success: bool | None = None
    stated_at: int = 0
    stated_by: str = ""


class SessionHead(msgspec.Struct, frozen=True, kw_only=True, tag="head", omit_defaults=True):
    """The session itself. Key: `session_key`."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None
    opened: float
    last: float
    """Log time of its newest trace record."""
    offset: int = 0
    """Of its newest trace record, in the window or not."""
    since: int = 0
    """Trace records below this offset belong to an earlier life of the session, which closed."""
    closed: bool = False
    """Closed; the tombstone follows once the commit has passed `since`."""
    cause: int = -1
    """Offset of the newest verdict that changed it."""
    task: TaskSaid | None = None


class SessionTurn(msgspec.Struct, frozen=True, kw_only=True, tag="turn", omit_defaults=True):
    """One trace in the session's window. Key: `session_key` + the trace id."""

    service: str
    session_id: str
    turn: Turn
    revision: int
    offset: int
    """Of its newest trace record."""
    seen: float
    outcomes: tuple[Outcome, ...] = ()
    """Without explanations and metadata: what formulas and repeats need."""
    signal_ids: dict[str, str] = {}
    """Final signal ids by evaluator."""
    agent: str = ""
    agent_version: str | None = None
    session_source: str = "trace"
    kept: bool = True
    """False: the output text was let go of; its trace record has it."""
    span_id: str | None = None
    """Of the trace's root."""
    closed: Closed = "root_ended"
    placed_at: float = 0.0
    """Log time of its newest trace record."""
    due: tuple[str, ...] = ()
    """Judged evaluators whose verdict has not come yet."""
    counted: tuple[str, ...] = ()
    """Judged evaluators that had a final outcome at an earlier revision."""


class SessionAwaited(msgspec.Struct, frozen=True, kw_only=True, tag="awaited", omit_defaults=True):
    """A closed session whose verdict has not come yet: all that its signals need."""

    service: str
    session_id: str
    session_source: str
    agent: str
    agent_version: str | None
    seen: float
    closed: Closed
    closed_at: float
    """Log time."""
    digest: str
    due: tuple[str, ...]
    task: TaskSaid | None = None
    """Of a run whose success the verdict decides."""


SessionsTopic = SessionHead | SessionTurn | SessionAwaited


class _Unspanned(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    trace: Trace
    revision: int
    seen: float
    session_changed: bool = False


_T = TypeVar("_T")
_encoder = msgspec.msgpack.Encoder()
_traces = msgspec.msgpack.Decoder(TracesTopic)
_unspanned = msgspec.msgpack.Decoder(_Unspanned | VerdictRecord | SessionRecord | RunRecord)
_sessions = msgspec.msgpack.Decoder(SessionsTopic)
_mark = msgspec.msgpack.Decoder(Mark)


def session_key(service: str, session_id: str) -> bytes:
    """The key that keeps a session's records in one partition."""
    return f"{service}\0{session_id}".encode()


def encode(record: msgspec.Struct) -> bytes:
    """The bytes of any record above."""
    return _encoder.encode(record)


def decode_traces(value: bytes) -> TracesTopic:
    """A record of `traces`.

    Raises:
        Undecodable: not one.
    """
    return _decode(_traces, value)


def decode_unspanned(value: bytes) -> TracesTopic:
    """A record of `traces` for who needs no raw spans: they are skipped, not copied.

    Raises:
        Undecodable: not one.
    """
    found = _decode(_unspanned, value)
    if not isinstance(found, _Unspanned):
        return found
    return TraceRecord(
        trace=found.trace,
        spans=(),
        revision=found.revision,
        seen=found.seen,
        session_changed=found.session_changed,
    )


def decode_sessions(value: bytes) -> SessionsTopic:
    """A record of `sessions`.

    Raises:
        Undecodable: not one.
    """
    return _decode(_sessions, value)


def decode_mark(value: bytes) -> Mark:
    """A record of `closings`.

    Raises:
        Undecodable: not one.
    """
    return _decode(_mark, value)


def _decode(decoder: msgspec.msgpack.Decoder[_T], value: bytes) -> _T:
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error
