"""uvicorn on the event loop that is already running, and the check of bearer tokens: for every HTTP listener."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
import ssl
from asyncio import TimerHandle
from collections.abc import Generator, Iterable
from operator import itemgetter
from typing import Any, cast

import uvicorn
from pydantic import SecretStr
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.runtime import net

HEAD_TIMEOUT = 10.0
"""Seconds for the head of a request, from its first byte or from the connection's beginning."""
IDLE_TIMEOUT = 60.0
"""Seconds between two requests of a connection."""
WRITE_TIMEOUT = 30.0
"""Seconds in which a client must take what waits for it: 64 KiB at most."""
MAX_HEAD = 64 << 10
MAX_CONNECTIONS = 1000
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection that sends no head of its next request in time, too long a one, or does not read its answer.

    When there are too many connections, the one that has waited longest for a head is closed for the new one.
    """

    head_timeout = HEAD_TIMEOUT
    idle_timeout = IDLE_TIMEOUT
    write_timeout = WRITE_TIMEOUT
    max_connections = MAX_CONNECTIONS
    _deadline: TimerHandle | None = None
    _unread: TimerHandle | None = None
    _head = 0
    """Bytes that came since a head is due."""

    @property
    def due(self) -> float | None:
        """When a head must be complete, in the loop's time; None: a request is being served."""
        return None if self._deadline is None else self._deadline.when()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn narrows it too
        """Start the clock, unless there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections and not self._close_idle():
            transport.abort()
            return
        self._expect_head(self.head_timeout)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head."""
        if self._deadline is not None:
            if not self._head:
                self._expect_head(self.head_timeout)
            self._head += len(data)
        super().data_received(data)
        if self._deadline is not None and self._head > MAX_HEAD:
            self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        """The head came in time; the body has its own limit."""
        self._stop_clock()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next head is due."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._expect_head(self.idle_timeout)

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.write_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read what waited."""
        super().resume_writing()
        self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
        self._stop_clock()
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect_head(self, seconds: float) -> None:
        self._stop_clock()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _close_idle(self) -> bool:
        """Close a connection that sends no request; whether there was one."""
        others = cast("set[object]", self.connections) - {self}
        idle = [(each.due, each) for each in others if isinstance(each, BoundedProtocol)]
        waiting = [(due, each) for due, each in idle if due is not None]
        if not waiting:
            return False
        min(waiting, key=itemgetter(0))[1].transport.abort()
        return True

    def _stop_waiting(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._head = 0


class GuestServer(uvicorn.Server):
    """Serves an ASGI application; the process's signal handlers and logging stay as they are.

    Args:
        app: The application.
        tls: Set = HTTPS.
        settings: Further arguments of `uvicorn.Config`.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tls: ssl.SSLContext | None = None,
        **settings: Any,  # uvicorn's own keyword arguments, checked by it
    ) -> None:
        config = uvicorn.Config(
            app,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            **settings,
        )
        config.load()
        config.ssl = tls
        super().__init__(config)
        self.ready = asyncio.Event()
        """Set once connections are accepted."""

    def stop(self, grace: float) -> None:
        """Close the port and give open requests `grace` seconds; `serve` returns then."""
        self.config.timeout_graceful_shutdown = grace  # type: ignore[assignment] # any float will do
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave them to whoever started the loop."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        self.ready.set()


class BearerTokens:
    """The accepted tokens of a listener; empty = no authentication."""

    def __init__(self, tokens: Iterable[SecretStr]) -> None:
        self._tokens = [token.get_secret_value().encode() for token in tokens]

    @property
    def required(self) -> bool:
        """Whether a token is needed at all."""
        return bool(self._tokens)

    def sender(self, authorization: str | None, address: str) -> str | None:
        """Who sends: the place in the list of the token in an `Authorization` header; None: it holds no accepted one.

        Where no token is needed, whom the address stands for.
        """
        if not self._tokens:
            return net.sender(address)
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        matches = self._matches(token.strip().encode(errors="surrogateescape"))
        return f"token {matches.index(True)}" if any(matches) else None

    def accepts(self, token: bytes) -> bool:
        """Whether this is one of the tokens."""
        return any(self._matches(token))

    def _matches(self, token: bytes) -> list[bool]:
        """Compares with each of the tokens, in constant time; no token is empty."""
        return [hmac.compare_digest(token, accepted) for accepted in self._tokens]
