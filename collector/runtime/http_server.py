"""uvicorn on the event loop that is already running, and the check of bearer tokens: for every HTTP listener."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
import ssl
from collections.abc import Generator, Iterable
from typing import Any

import uvicorn
from pydantic import SecretStr
from starlette.types import ASGIApp


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

    def allows(self, authorization: str | None) -> bool:
        """Whether the value of an `Authorization` header holds an accepted token."""
        scheme, _, token = (authorization or "").partition(" ")
        if not self._tokens:
            return True
        return scheme.lower() == "bearer" and self.accepts(
            token.strip().encode(errors="surrogateescape")
        )

    def accepts(self, token: bytes) -> bool:
        """Whether this is one of the tokens; compares with each of them, in constant time."""
        matches = [hmac.compare_digest(token, accepted) for accepted in self._tokens]
        return bool(token) and any(matches)
