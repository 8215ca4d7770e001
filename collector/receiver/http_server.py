"""uvicorn as a guest: on the loop it is given, with no signal handlers and no logging of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from asyncio import Task, TimerHandle
from collections.abc import Generator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.receiver.http import HttpApp
from collector.receiver.listen import bind
from collector.receiver.tls import Tls

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


class _Guest(uvicorn.Server):
    """Says when it has started, and leaves signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


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
        self._server: _Guest | None = None
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
        sock = bind(self._host, self._port, key=KEY)
        self._port = sock.getsockname()[1]
        self._server = _Guest(self._config())
        # What any client can provoke is not worth a line each.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        self._task = asyncio.create_task(self._server.serve([sock]), name="receiver-http")
        await self._server.ready.wait()

    async def stop(self, grace: float) -> None:
        """Close the port, give requests in flight `grace` seconds."""
        if self._server is None or self._task is None:
            return
        self._server.config.timeout_graceful_shutdown = grace  # type: ignore[assignment] # any float will do
        self._server.should_exit = True
        await self._task
        self._server = self._task = None

    def _config(self) -> uvicorn.Config:
        config = uvicorn.Config(
            self._app,
            http=self._protocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_TIMEOUT),
        )
        config.load()
        if self._tls is not None:
            config.ssl = self._tls.context
        return config
