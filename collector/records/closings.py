"""Topic `closings`: one mark per closing of a trace."""

from __future__ import annotations

import msgspec

from collector.records.codec import decode


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
    closed_at: float
    """Log time."""
    local_root: bool = False
    rootless: bool = False
    """No root had arrived, not even a local one: late spans wait for `idle` again."""


_decoder = msgspec.msgpack.Decoder(Mark)


def decode_mark(value: bytes) -> Mark:
    """A record of `closings`.

    Raises:
        Undecodable: it is not a mark.
    """
    return decode(_decoder, value)
