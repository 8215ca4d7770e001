"""The listening socket of gRPC: it looks at the first bytes of each connection before grpc has it.

An HTTP/1 request gets an answer that its sender can read, and everything else goes to grpc as it is: HTTP/2 and TLS,
and what is neither. grpc itself would greet an HTTP/1 client in binary, which ends some of them.
"""

import asyncio
import ctypes
import logging
import re
import socket
import sys
from asyncio import TimerHandle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import grpc

# Gives connections that were accepted elsewhere to a gRPC server, by the hook that grpc has for that.
#
# grpc's C++ library calls it an external connection acceptor: a server with a port of the name `external:...` fills the
# pointer that is under that name among its channel options, with an object whose one method takes a connection.
# Python's grpc lets the name and the pointer pass and wraps no more of it, so the method is called by `ctypes`, out of
# its table of methods. Why: docs/decisions/038-the-grpc-port-is-ours.md.

PORT: Final = "external:spanwise"
FIRST, BEYOND = (1, 76), (1, 86)
"""The versions of grpcio whose hook was tried."""
_METHOD = 2  # its place in the table, behind the two destructors
_Handle = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


def is_known(version: str = grpc.__version__, platform: str = sys.platform) -> bool:
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None or platform not in ("linux", "darwin"):
        return False
    return FIRST <= (int(found[1]), int(found[2])) < BEYOND


class Handover:
    """The hook of one server. It must live as long as the server, and hand nothing over once that was stopped."""

    def __init__(self) -> None:
        self._taker = ctypes.c_void_p()

    def __int__(self) -> int:
        """The address that grpc writes its object's into: how its channel options carry pointers."""
        return ctypes.addressof(self._taker)

    @property
    def is_connected(self) -> bool:
        return bool(self._taker.value)

    def hand(self, connection: socket.socket, listener: socket.socket) -> None:
        """Give a connection to the server, unread.

        Raises OSError: the other side has gone; the connection is closed.
        """
        taker = self._taker.value
        if taker is None:
            raise RuntimeError("the server has not taken the hook")
        try:
            connection.getpeername()  # grpc leaves open what has no peer
        except OSError:
            connection.close()
            raise
        table = _pointer_at(taker)
        handle = _Handle(_pointer_at(table + _METHOD * ctypes.sizeof(ctypes.c_void_p)))
        handle(taker, listener.fileno(), connection.detach(), None)


def _pointer_at(where: int) -> int:
    return ctypes.c_size_t.from_address(where).value


Why = Literal["http1", "slow_head", "too_many"]  # why a connection was closed

LOOK = 4  # bytes that tell HTTP/1 from HTTP/2, whose connections begin with PRI, and from TLS
WAIT = 10.0  # seconds for the first bytes of a connection, and for the rest of a request that was refused
WAITING = 500  # connections that have sent nothing yet, or were refused and still send
BACKLOG = 1024
_AT_ONCE = 64
_PAUSE = 1.0
"""Seconds without accepting while the process has no file left."""
_METHODS = frozenset(
    (b"GET ", b"PUT ", b"POST", b"HEAD", b"OPTI", b"DELE", b"PATC", b"CONN", b"TRAC")
)
_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class GrpcPort:
    """Accepts connections. Owned by the loop that opens it."""

    listener: socket.socket
    hand: Callable[[socket.socket], None]
    """Takes a connection whose bytes are unread. May raise OSError: it was closed."""
    refusal: Callable[[], str]  # the text that an HTTP/1 request is answered with
    closed: Callable[[Why], None]  # called with the reason for each connection that is closed here
    most: int = WAITING  # connections that may wait here; for one more, the oldest is closed
    wait: float = WAIT  # seconds that each may
    _waiting: dict[socket.socket, TimerHandle] = field(
        default_factory=dict[socket.socket, TimerHandle]
    )
    """The oldest first, each with the end of its time."""
    _pause: TimerHandle | None = None
    _is_reported: bool = False

    def open(self) -> None:
        self.listener.setblocking(False)
        # Every connection inherits it: answers are small, and wait for nothing.
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asyncio.get_running_loop().add_reader(self.listener, self._accept)

    def close(self) -> None:
        """Stop listening, and close what grpc does not have yet."""
        if self._pause is not None:
            self._pause.cancel()
        asyncio.get_running_loop().remove_reader(self.listener)
        self.listener.close()
        for each in list(self._waiting):
            self._forget(each)
            each.close()

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self.listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError:  # no file is left: the connection stays where it is, and would be reported without end
                loop = asyncio.get_running_loop()
                loop.remove_reader(self.listener)
                self._pause = loop.call_later(_PAUSE, self.open)
                return
            connection.setblocking(False)
            # Fewer bytes say nothing: the loop tells of them once they are more, or the last.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, LOOK)
            self._keep(connection, self._look)

    def _keep(self, connection: socket.socket, readable: Callable[[socket.socket], None]) -> None:
        loop = asyncio.get_running_loop()
        self._waiting[connection] = loop.call_later(self.wait, self._end, connection, "slow_head")
        loop.add_reader(connection, partial(readable, connection))
        if len(self._waiting) > self.most:
            self._end(next(iter(self._waiting)), "too_many")

    def _forget(self, connection: socket.socket) -> None:
        self._waiting.pop(connection).cancel()
        asyncio.get_running_loop().remove_reader(connection)

    def _end(self, connection: socket.socket, why: Why) -> None:
        self.closed(why)
        self._forget(connection)
        connection.close()

    def _look(self, connection: socket.socket) -> None:
        try:
            head = connection.recv(LOOK, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            head = b""
        self._forget(connection)
        if not head:
            connection.close()
            return
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
        if head in _METHODS:
            self._refuse(connection)
            return
        with suppress(OSError):
            self.hand(connection)

    def _refuse(self, connection: socket.socket) -> None:
        """Answer, and read on until the sender closes: what it sends afterwards must not take the answer from it."""
        text = self.refusal()
        self.closed("http1")
        if not self._is_reported:
            self._is_reported = True
            _log.warning("The gRPC port got an HTTP/1 request. It was answered: %s", text)
        body = f"{text}\n".encode()
        head = (
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        try:
            connection.sendall(head.encode() + body)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            connection.close()
            return
        self._keep(connection, self._discard)

    def _discard(self, connection: socket.socket) -> None:
        try:
            rest = connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            rest = b""
        if not rest:
            self._forget(connection)
            connection.close()
