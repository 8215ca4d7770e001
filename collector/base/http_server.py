"""uvicorn on the event loop that is already running, and the check of bearer tokens: for every HTTP listener."""

import asyncio
import contextlib
import hmac
import logging
import socket
import ssl
from collections.abc import Callable, Generator, Iterable
from functools import partial
from math import ceil
from typing import cast

import uvicorn
from pydantic import SecretStr
from starlette.types import ASGIApp

from collector.base import net
from collector.base.bounded_protocol import BoundedProtocol, Limits, Why
from collector.base.clock import next_tick


class GuestServer(uvicorn.Server):
    """Serves an ASGI application; the process's signal handlers and logging stay as they are.

    `closed`: called with the reason whenever a connection is closed because of them. `http2`: the answer to a
    connection that begins as HTTP/2 does; None: nothing that it could read.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        closed: Callable[[Why], None],
        tls: ssl.SSLContext | None = None,
        http2: Callable[[], str] | None = None,
    ) -> None:
        protocol = partial(BoundedProtocol, limits=limits, closed=closed, http2=http2)
        config = uvicorn.Config(
            app,
            http=cast("type[BoundedProtocol]", protocol),  # is only called
            timeout_keep_alive=ceil(limits.idle_timeout)
            + 1,  # the protocol's own limit comes first
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
        # What any client can provoke is not worth a line each.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        config.load()
        config.ssl = tls
        super().__init__(config)
        self.ready = asyncio.Event()  # set once connections are accepted
        self._ending = asyncio.Event()

    def stop(self, grace: float) -> None:
        """Close the port and give open requests `grace` seconds; `serve` returns then."""
        self.config.timeout_graceful_shutdown = grace  # type: ignore[assignment] # any float will do
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Keep the date of answers. uvicorn's own looks ten times a second whether it should end."""
        while not await self.on_tick(0):
            await next_tick(1, self._ending)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave them to whoever started the loop."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


class BearerTokens:
    """The accepted tokens of a listener; empty = no authentication."""

    def __init__(self, tokens: Iterable[SecretStr]) -> None:
        self._tokens = [token.get_secret_value().encode() for token in tokens]

    @property
    def required(self) -> bool:
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
        return any(self._matches(token))

    def _matches(self, token: bytes) -> list[bool]:
        """Compares with each of the tokens, in constant time; no token is empty."""
        return [hmac.compare_digest(token, accepted) for accepted in self._tokens]
