"""The HTTP half of the receiver: bounds on connections, and the server."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Task, TimerHandle

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.receiver.errors import cannot_listen
from collector.receiver.http import HttpApp
from collector.receiver.tls import Tls
from collector.runtime.http_server import GuestServer
from collector.runtime.net import bind

KEY = "receiver.http"
HEAD_TIMEOUT = 60.0
IDLE_TIMEOUT = 60.0
MAX_CONNECTIONS = 1000


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection that does not send the head of its next request in time."""

    head_timeout = HEAD_TIMEOUT
    _deadline: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn narrows it too
        """Start the clock, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self._expect_head()

    def on_headers_complete(self) -> None:
        """The head came in time; the body has its own limit."""
        self._stop_clock()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next head is due."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._stop_clock()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._stop_clock()
        self._deadline = self.loop.call_later(self.head_timeout, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class HttpServer:
    """The HTTP half of the receiver."""

    def __init__(
        self,
        app: HttpApp,
        *,
        host: str,
        port: int,
        tls: Tls | None,
        protocol: type[BoundedProtocol],
    ) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._tls = tls
        self._protocol = protocol
        self._server: GuestServer | None = None
        self._task: Task[None] | None = None

    @property
    def port(self) -> int:
        """The real port, once started."""
        return self._port

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            ConfigError: the port cannot be had.
        """
        try:
            sock = bind(self._host, self._port)
        except OSError as error:
            why = error.strerror or str(error)
            raise cannot_listen(KEY, self._host, self._port, why) from error
        self._port = sock.getsockname()[1]
        self._server = GuestServer(
            self._app,
            tls=self._tls and self._tls.context,
            http=self._protocol,
            timeout_keep_alive=int(IDLE_TIMEOUT),
        )
        # What any client can provoke is not worth a line each.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._task = asyncio.create_task(self._server.serve([sock]), name="receiver-http")
        await self._server.ready.wait()

    async def stop(self, grace: float) -> None:
        """Close the port, give requests in flight `grace` seconds."""
        if self._server is None or self._task is None:
            return
        self._server.stop(grace)
        await self._task
        self._server = self._task = None
