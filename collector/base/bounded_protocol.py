"""HTTP/1.1 as uvicorn speaks it, with bounds on connections and on the heads of requests."""

import asyncio
import math
import random
import struct
from asyncio import TimerHandle
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# The end of a connection that speaks HTTP/2 where only HTTP/1 is served, in words that its sender shows.
#
# A gRPC call gets a status of its own; a mere GOAWAY would have the client come back at once, again and again. Whoever
# makes no call is refused by GOAWAY alone.

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


Why = Literal["large_head", "slow_head", "too_many", "unread"]
"""Why a connection was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    head_timeout: float = 10.0
    """Seconds for the head of a request, from its first byte or from the connection's beginning."""
    idle_timeout: float = 60.0  # seconds between two requests of a connection
    write_timeout: float = 30.0
    """Seconds in which a client must take what waits for it: 64 KiB at most."""
    max_head: int = 64 << 10  # bytes of a head
    max_connections: int = 1000
    max_age: float = math.inf
    """Seconds, up to a tenth less, after which an answer ends its connection."""


DEFAULT = Limits()


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection that sends no head of its next request in time, too large a one, or does not read its answer.

    When there are too many connections, the one that has waited longest for a head is closed for the new one; when all
    are being served, the one whose request began first. So whoever comes is heard, be it a probe of health. `closed`:
    called with the reason whenever a connection is closed, except when it is idle only. `http2`: the answer to a
    connection that begins as HTTP/2 does. `given`: what uvicorn passes to its protocol.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        closed: Callable[[Why], None],
        http2: Callable[[], str] | None = None,
        **given: Any,  # uvicorn's own arguments
    ) -> None:
        super().__init__(**given)
        self._limits = limits
        self._closed = closed
        self._http2 = http2
        self._refusal: Http2Refusal | None = None
        self._due: float | None = None
        """When a head must be complete, in the loop's time; None: a request is being served."""
        self._timer: TimerHandle | None = None
        """Looks whether a head is overdue; one for many requests, since timers are dear on uvloop."""
        self._unread: TimerHandle | None = None
        """When what waits for the client must have been read."""
        self._ends = math.inf  # when answers begin to end the connection, in the loop's time
        self._is_in_head = False
        self._had_request = False
        self._head = 0  # bytes of an unfinished head, the first piece apart
        self.since = 0.0
        """When the connection began to wait for a head or to be served, in the loop's time."""

    @property
    def waits_for_head(self) -> bool:
        return self._due is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn narrows it too
        """Start the clock, and make room if there are too many connections."""
        super().connection_made(transport)
        self._ends = self.loop.time() + self._limits.max_age * (1.0 - random.random() / 10)  # noqa: S311 - not together is enough
        self._expect_head(self._limits.head_timeout)
        if len(self.connections) > self._limits.max_connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Bound the bytes of a head that does not end."""
        if self._http2 and not self._had_request and data.startswith(PREFACE):
            self._due = None
            self._refusal = Http2Refusal(self.transport, self._http2())
        if self._refusal is not None:
            self._refusal.received(data)
            return
        was_in_head = self._is_in_head
        super().data_received(data)
        if was_in_head and self._is_in_head:
            self._head += len(data)
            if self._head > self._limits.max_head:
                self._refuse_head()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        self._head = 0
        if self.waits_for_head:
            self._expect_head(self._limits.head_timeout)

    def on_headers_complete(self) -> None:
        """The head came in time; the body has its own limit."""
        self._is_in_head = False
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > (
            self._limits.max_head
        ):
            self._refuse_head()
            raise ValueError("the head is too large")  # ends the parser's work
        self._due = None
        self._had_request = True
        self.since = self.loop.time()
        super().on_headers_complete()
        if self.since >= self._ends:
            self.cycle.default_headers = [*self.cycle.default_headers, (b"connection", b"close")]

    def on_response_complete(self) -> None:
        """The next head is due, unless a request that was sent ahead is served next."""
        super().on_response_complete()
        if not self.transport.is_closing() and self.cycle.response_complete:
            self._expect_head(self._limits.idle_timeout)

    def send_400_response(self, msg: str) -> None:
        """Unless the request was answered already."""
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.write_timeout, self._cut_off)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
        if self._refusal is not None:
            self._refusal.lost()
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_head(self, seconds: float) -> None:
        self.since = self.loop.time()
        self._due = self.since + seconds
        if self._timer is not None and self._timer.when() > self._due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self.loop.call_at(self._due, self._check)

    def _check(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due > self.loop.time():
            self._timer = self.loop.call_at(self._due, self._check)
            return
        if self._is_in_head or not self._had_request:
            self._closed("slow_head")
        self.transport.abort()

    def _cut_off(self) -> None:
        self._closed("unread")
        self.transport.abort()

    def _refuse_head(self) -> None:
        self._closed("large_head")
        text = b"the head of the request is larger than %d bytes\n" % self._limits.max_head
        self.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
            b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n\r\n" % len(text)
        )
        self.transport.write(text)
        self.transport.close()

    def _make_room(self) -> None:
        # uvicorn types the set for every protocol it knows.
        others = cast("set[BoundedProtocol]", self.connections) - {self}
        live = [each for each in others if not each.transport.is_closing()]
        if len(live) < self._limits.max_connections:
            return
        idle = [each for each in live if each.waits_for_head]
        self._closed("too_many")
        min(idle or live, key=attrgetter("since")).transport.abort()

    def _stop_waiting(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
