"""Listening sockets, and the one clear line when a port cannot be had."""

from __future__ import annotations

import socket

from collector.errors import ConfigError


def address(host: str, port: int) -> str:
    """`host:port`, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def bind(host: str, port: int, *, key: str) -> socket.socket:
    """A bound TCP socket; port 0 = any free one.

    Raises:
        ConfigError: the port is taken, or the host is not one of this machine's.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise unavailable(host, port, error.strerror or str(error), key=key) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
    except OSError as error:
        sock.close()
        raise unavailable(host, port, error.strerror or str(error), key=key) from error
    return sock


def unavailable(host: str, port: int, why: str, *, key: str) -> ConfigError:
    """The one line."""
    return ConfigError(
        f"{key}: cannot listen on {address(host, port)}: {why}; stop what listens there or set {key}.port"
    )
