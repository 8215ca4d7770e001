"""A segment: spans of one request that belong to one turn of an agent whose traces are made.

The spans of a segment have an id of their own instead of a trace's: assembly finds the turn (assembly/turns.py),
and reads what it needs for that in the trace state of each span. So a segment goes the way of a trace's spans: through
the log, cut and joined as they are, read back after a restart.
"""

import binascii
import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

_MARK = "spanwise="
_TAG = b"\x1a"
"""Field 3 of a span, its trace state: it is behind the ids of 16 and of 8 bytes."""
_AT = 28
_TRACE, _SESSION = 16, 8
"""Bytes of ids."""


class Segment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What places a segment. Ids are bytes."""

    owner: bytes
    """16 bytes: who has all segments that may share a turn with this one. The key of its records in the log."""
    session: bytes  # 8 bytes that tell the sessions of one owner apart
    start: int  # when its first event was, unix nanoseconds
    turn: bytes = b""  # the id of the made trace, where its events say the turn
    traces: tuple[bytes, ...] = ()
    """Ids of the traces that its spans were sent in, or that its records carry."""
    is_prompt: bool = False  # it begins with the prompt of a person
    is_helper: bool = False  # `turn` is not a person's turn: its events belong to the turn before
    owns_traces: bool = False  # everything in `traces` is of the same turn
    is_end: bool = False  # nothing more of the turn is expected
    helper_session: bytes = b""  # a session of a helper that this session has started
    has_spans: bool = False  # it has spans that were sent as such: alone, they are a trace


Segments = dict[bytes, Segment]  # by the trace id of their spans

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Segment).decode


def segment_id(segment: Segment, first_span: bytes) -> bytes:
    """The trace id of its spans: 16 bytes, the same for the same events."""
    return hashlib.sha256(b"segment" + _encode(segment) + first_span).digest()[:16]


def trace_state(segment: Segment) -> str:
    """What its spans carry: a list member as W3C's trace context allows it."""
    return _MARK + urlsafe_b64encode(_encode(segment)).decode().rstrip("=")


def segment_in(state: str) -> Segment | None:
    """The segment that a trace state names; None: it is anybody's, or says what is not a segment.

    Senders may write any trace state: what does not have the form of ours is theirs.
    """
    if not state.startswith(_MARK):
        return None
    text = state.removeprefix(_MARK)
    try:
        segment = _decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        return None
    return segment if _is_sound(segment) else None


def _is_sound(segment: Segment) -> bool:
    """Whether every id has the length of its kind, and the time is not before 1970."""
    return (
        len(segment.owner) == _TRACE
        and len(segment.session) == _SESSION
        and segment.start >= 0
        and (not segment.turn or (len(segment.turn) == _TRACE and any(segment.turn)))
        and len(segment.helper_session) in (0, _SESSION)
        and all(len(each) == _TRACE and any(each) for each in segment.traces)
    )


def segment_of(span: bytes) -> Segment | None:
    """The segment of a raw span; None for a span of a trace, which nearly all are."""
    if span[_AT : _AT + 1] != _TAG:
        return None
    length, start = span[_AT + 1], _AT + 2
    if length >= 0x80:  # two bytes: no trace state of ours takes three
        length, start = (length & 0x7F) | span[start] << 7, start + 1
    return segment_in(span[start : start + length].decode(errors="replace"))
