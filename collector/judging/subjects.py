"""What the room reads of a record of `traces`: as little as can be, the trace itself goes through as it is."""

from __future__ import annotations

from typing import Any

import msgspec

from collector.errors import Undecodable
from collector.records.topics import RunRecord, SessionRecord, VerdictRecord


class RawTrace(msgspec.Struct, frozen=True, kw_only=True, tag="trace"):
    """A `TraceRecord` whose trace is not decoded and whose spans are left out."""

    trace: msgspec.Raw


class TraceHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the room must know of a trace."""

    trace_id: str
    service: str
    session_id: str
    digest: str = ""
    unread: str | None = None
    start_time_unix_nano: int = 0
    model_calls: tuple[msgspec.Raw, ...] = ()
    tool_calls: tuple[msgspec.Raw, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether a judge has anything to say about it; otherwise the desk does."""
        return self.unread is None and bool(self.model_calls or self.tool_calls)


class _Output(msgspec.Struct, frozen=True, kw_only=True):
    output: str | None = None


Subject = RawTrace | VerdictRecord | SessionRecord | RunRecord

_subject = msgspec.msgpack.Decoder(Subject)
_head = msgspec.msgpack.Decoder(TraceHead)
_output = msgspec.msgpack.Decoder(_Output)


def decode_subject(value: bytes) -> Subject:
    """A record of `traces`.

    Raises:
        Undecodable: not one.
    """
    return _decoded(_subject, value)


def decode_head(raw: msgspec.Raw) -> TraceHead:
    """The head of a trace.

    Raises:
        Undecodable: not a trace.
    """
    return _decoded(_head, raw)


def decode_output(raw: msgspec.Raw) -> str | None:
    """The text that a trace ended with.

    Raises:
        Undecodable: not a trace.
    """
    return _decoded(_output, raw).output


def _decoded(decoder: msgspec.msgpack.Decoder[Any], value: bytes | msgspec.Raw) -> Any:
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Undecodable(str(error)) from error
