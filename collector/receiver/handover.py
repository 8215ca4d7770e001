"""Gives connections that were accepted elsewhere to a gRPC server, by the hook that grpc has for that.

grpc's C++ library calls it an external connection acceptor: a server with a port of the name `external:...` fills the
pointer that stands under that name among its channel options, with an object whose one method takes a connection.
Python's grpc lets the name and the pointer pass and wraps no more of it, so the method is called by `ctypes`, out of
its table of methods. Why: docs/decisions/038-the-grpc-port-is-ours.md.
"""

from __future__ import annotations

import ctypes
import re
import socket
import sys
from typing import Final

import grpc

PORT: Final = "external:spanwise"
FIRST, BEYOND = (1, 76), (1, 86)
"""The versions of grpcio whose hook was tried."""
_METHOD = 2
"""Its place in the table, behind the two destructors."""
_Handle = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


def is_known(version: str = grpc.__version__, platform: str = sys.platform) -> bool:
    """Whether this grpcio has the hook as it is called here."""
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
        """Whether the server has taken the hook, which it does when the port is added."""
        return bool(self._taker.value)

    def hand(self, connection: socket.socket, listener: socket.socket) -> None:
        """Give a connection to the server, unread.

        Raises:
            OSError: the other side has gone; the connection is closed.
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
