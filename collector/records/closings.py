"""Topic `closings`: one mark per closing of a trace."""

from functools import partial

import msgspec

from collector.records.codec import decode


class TurnFacts(msgspec.Struct, frozen=True, array_like=True):
    """What later segments are placed by, of a made trace that has closed (assembly/turns.py). Ids are bytes."""

    owner: bytes
    session: bytes = b""
    start: int | None = None
    """When its prompt was, unix nanoseconds; None: no prompt of it has come."""
    traces: tuple[bytes, ...] = ()  # traces of which everything is of this turn
    helpers: tuple[bytes, ...] = ()  # turns that are not a person's, which its events named
    parents: tuple[tuple[bytes, bytes], ...] = ()
    """Sessions of helpers, each with the session that started it."""
    until: int = 0  # the offset that had been read up to when it closed
    asides: tuple[bytes, ...] = ()  # sessions in which no one prompts


class Mark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A trace was closed: a span of it at or below `last_offset` is read again, a span above it is late."""

    trace_id: bytes
    last_offset: int = msgspec.field(name="reach")
    """The last offset of the `spans` partition that the closing covers."""
    revision: int
    session_key: bytes
    traces_partition: int
    traces_offset: int
    """Of the trace's newest record; -1 if the trace could not be read and has no record."""
    closed_at: float  # log time
    local_root: bool = False
    rootless: bool = False
    """No root had arrived, not even a local one: late spans wait for `idle` again."""
    turn: TurnFacts | None = None  # of a made trace


decode_mark = partial(decode, msgspec.msgpack.Decoder(Mark))
"""A record of `closings`. Raises Undecodable: it is not a mark."""
