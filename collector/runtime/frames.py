"""Frames: a payload behind its length, 4 bytes big-endian. Between a process and its children, and in recordings."""

from __future__ import annotations

import struct
from asyncio import StreamReader
from collections.abc import Iterator
from typing import Protocol

LENGTH = struct.Struct(">I")


class IncompleteFrameError(EOFError):
    """The stream ended within a frame."""


class Stream(Protocol):
    """A file, or what can be read like one."""

    def read(self, size: int, /) -> bytes:
        """`size` bytes; fewer only at the end."""
        ...


def pack_frame(payload: bytes) -> bytes:
    """The frame of a payload."""
    return LENGTH.pack(len(payload)) + payload


async def receive_frame(reader: StreamReader) -> bytes:
    """The next payload.

    Raises:
        asyncio.IncompleteReadError: the stream has ended.
    """
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return await reader.readexactly(length)


def read_frames(stream: Stream) -> Iterator[bytes]:
    """Every payload until the end of the stream.

    Raises:
        IncompleteFrameError: the stream ends within a frame.
    """
    while head := stream.read(LENGTH.size):
        if len(head) < LENGTH.size:
            raise IncompleteFrameError
        (length,) = LENGTH.unpack(head)
        payload = stream.read(length)
        if len(payload) < length:
            raise IncompleteFrameError
        yield payload
