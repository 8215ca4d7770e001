"""Large answers on their way: bounds the bytes that clients have not taken yet, whoever reads slowly or not at all.

ASGI middleware. An answer is sent in pieces, each once the one before is on its way, and has a time within which the
client must take it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.api.answers import error
from collector.api.families import ApiFamilies

PIECE = 64 << 10
LARGE = 256 << 10
"""Bytes of an answer from which on it counts."""
LIMIT = 64 << 20  # bytes of large answers on their way at once; one alone may be larger
PATIENCE = 60.0
RATE = 100_000.0
"""A client must take an answer within PATIENCE seconds and its size at so many bytes per second."""


class Outgoing:
    def __init__(self, app: ASGIApp, families: ApiFamilies) -> None:
        self._app = app
        self._refused = families.answers_refused.labels("unread")
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as deadline:
                answer = _OutgoingAnswer(send, self._takes, deadline)
                try:
                    await self._app(scope, receive, answer.send)
                finally:
                    self._bytes -= answer.size
                if answer.is_refused:
                    await self._refuse(scope, receive, send)

    def _takes(self, size: int) -> bool:
        if self._bytes and self._bytes + size > LIMIT:
            return False
        self._bytes += size
        return True

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._refused.inc()
        message = "too many large answers are on their way; try again in a few seconds"
        await error(503, message, headers={"retry-after": "10"})(scope, receive, send)


class _OutgoingAnswer:
    def __init__(self, send: Send, takes: Callable[[int], bool], deadline: asyncio.Timeout) -> None:
        self._send = send
        self._takes = takes
        self._deadline = deadline
        self.size = 0  # bytes that were taken for it
        self.is_refused = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begin(int(Headers(raw=message["headers"]).get("content-length", "0")))
        if self.is_refused:
            return
        body: bytes = message.get("body", b"")
        for at in range(0, len(body) - PIECE, PIECE):
            piece = body[at : at + PIECE]
            await self._send({"type": message["type"], "body": piece, "more_body": True})
        if len(body) > PIECE:
            message = {**message, "body": body[(len(body) - 1) // PIECE * PIECE :]}
        await self._send(message)

    def _begin(self, size: int) -> None:
        if size <= LARGE:
            return
        if not self._takes(size):
            self.is_refused = True
            return
        self.size = size
        self._deadline.reschedule(asyncio.get_running_loop().time() + PATIENCE + size / RATE)
