"""The end of a connection that speaks HTTP/2 where only HTTP/1 is served, in words that its sender shows.

A gRPC call gets a status of its own; a mere GOAWAY would have the client come back at once, again and again. Whoever
makes no call is refused by GOAWAY alone.
"""

from __future__ import annotations

import asyncio
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WAIT = 1.0
"""Seconds for the first call, and for the client to read its answer."""
_HEADERS, _SETTINGS, _GOAWAY = 1, 4, 7
_ACK, _END = 1, 5
_UNIMPLEMENTED = b"12"
_NO_ERROR = 0
"""Not HTTP_1_1_REQUIRED (13): grpcio 1.85 aborts the sender's whole process on that code while a call is open."""
_FRAME = 9
_MOST = 1 << 17
"""Bytes that are looked at."""


class Http2Refusal:
    """The answer to one connection. `received` gets its bytes from the first one on."""

    def __init__(self, transport: asyncio.Transport, text: str) -> None:
        self._transport = transport
        self._text = text.encode()
        self._received = b""
        self._is_over = False
        self._timer = asyncio.get_running_loop().call_later(WAIT, self._end)
        transport.write(_frame(_SETTINGS, b""))

    def received(self, data: bytes) -> None:
        """Answer once the first call is there; what follows is read and dropped."""
        if self._is_over:
            return
        self._received += data
        stream = first_call(self._received)
        if stream is not None:
            self._transport.write(_frame(_SETTINGS, b"", flags=_ACK) + _status(stream, self._text))
        if stream is not None or len(self._received) > _MOST:
            self._say_goodbye(stream or 0)
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(WAIT, self._transport.close)

    def lost(self) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self._say_goodbye(0)
        self._transport.close()

    def _say_goodbye(self, stream: int) -> None:
        self._is_over, self._received = True, b""
        why = struct.pack(">II", stream, _NO_ERROR)
        self._transport.write(_frame(_GOAWAY, why + self._text))


def first_call(received: bytes) -> int | None:
    """The stream of the first HEADERS frame behind the preface; None: it has not come yet."""
    at = len(PREFACE)
    while at + _FRAME <= len(received):
        stream = int.from_bytes(received[at + 5 : at + _FRAME]) & 0x7FFFFFFF
        if received[at + 3] == _HEADERS:
            return stream
        at += _FRAME + int.from_bytes(received[at : at + 3])
    return None


def _status(stream: int, text: bytes) -> bytes:
    """A gRPC answer of trailers alone; the fields are literals, which need no table of HPACK's."""
    fields = (
        (b":status", b"200"),
        (b"content-type", b"application/grpc"),
        (b"grpc-status", _UNIMPLEMENTED),
        (b"grpc-message", text),
    )
    block = b"".join(b"\x00" + _literal(name) + _literal(value) for name, value in fields)
    return _frame(_HEADERS, block, flags=_END, stream=stream)


def _literal(text: bytes) -> bytes:
    """Its length, of 7 bits and then by 7 more, and itself."""
    size = len(text)
    if size < 127:
        return bytes([size]) + text
    size -= 127
    length = b"\x7f"
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return length + bytes([size]) + text


def _frame(kind: int, payload: bytes, *, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">IBBI", len(payload), kind, flags, stream)[1:] + payload
