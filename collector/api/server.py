"""The admin listener: uvicorn on the loop that is already there."""

from __future__ import annotations

import asyncio
import errno
import socket

from starlette.types import ASGIApp

from collector.config.tree import Admin
from collector.errors import ConfigError
from collector.runtime.http_server import GuestServer
from collector.runtime.net import bind

PATIENCE = 3
"""Seconds that open requests get when the service stops."""


class AdminServer:
    """Serves `app` on `admin.host:admin.port`. Signals of the process stay with whoever started it."""

    def __init__(self, app: ASGIApp, admin: Admin) -> None:
        self._app = app
        self._admin = admin
        self._socket: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port it is bound to: what the system chose, when the configuration says 0."""
        return int(self._bound().getsockname()[1])

    def bind(self) -> None:
        """Take the port.

        Raises:
            ConfigError: It is taken, or not ours to take.
        """
        host, port = self._admin.host, self._admin.port
        try:
            listener = bind(host, port, backlog=128)
        except OSError as error:
            raise ConfigError(_why(error, host, port)) from error
        listener.setblocking(False)
        self._socket = listener

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then let open requests finish for a few seconds."""
        server = GuestServer(self._app, limit_concurrency=256)
        listener = self._bound()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve(sockets=[listener]))
                await stopping.wait()
                server.stop(PATIENCE)
        finally:
            listener.close()
            self._socket = None

    def _bound(self) -> socket.socket:
        if self._socket is None:
            self.bind()
        if self._socket is None:
            raise RuntimeError("bind left no socket")
        return self._socket


def _why(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return f'admin.host: "{host}" is no address of this machine'
    if error.errno == errno.EADDRINUSE:
        return (
            f"admin.port: {host}:{port} is taken by another process; set admin.port to a free one"
        )
    if error.errno == errno.EACCES:
        return f"admin.port: this user may not listen on {host}:{port}; use a port above 1023"
    return f"admin.host: cannot listen on {host}:{port} ({error.strerror})"
