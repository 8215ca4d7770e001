"""Every answer's shape: JSON, lists with a cursor, errors with a type; and the parameters of a request."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from collector.api.store import read_cursor

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
"""Entries of a page of answers: what a terminal shows, and what a request may hold the index for."""

_TYPES = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    422: "invalid_request",
    500: "internal",
    503: "unavailable",
}
NEVER_KEPT = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_encode = msgspec.json.Encoder().encode


class RequestRefused(Exception):
    """A request that gets an error for an answer."""

    def __init__(
        self, status: int, message: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers


def answer(
    content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        _encode(content),
        status_code=status,
        media_type="application/json",
        headers={**NEVER_KEPT, **(headers or {})},
    )


def listing(items: Sequence[Any], following: str | None) -> Response:
    return answer({"items": items, "next": following})


def error(status: int, message: str, *, headers: Mapping[str, str] | None = None) -> Response:
    kind = _TYPES.get(status, "error")
    return answer({"error": {"type": kind, "message": message}}, status=status, headers=headers)


def limit_of(request: Request) -> int:
    """The parameter `limit`. Raises Refused: not a whole number from 1 to 500."""
    text = request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if 1 <= limit <= MAX_LIMIT:
        return limit
    raise RequestRefused(
        422, f'limit: expected a whole number from 1 to {MAX_LIMIT}, got "{text[:40]}"'
    )


def cursor_of(request: Request) -> bytes | None:
    """The parameter `cursor`. Raises Refused: not one that an earlier answer gave as `next`."""
    text = request.query_params.get("cursor")
    if not text:
        return None
    try:
        return read_cursor(text)
    except ValueError as wrong:
        raise RequestRefused(422, "cursor: expected the `next` of an earlier answer") from wrong


def cursor_or_top(request: Request) -> bytes | None:
    """As `cursor_of`, for pages: what is not a cursor starts at the top, because people edit addresses."""
    try:
        return cursor_of(request)
    except RequestRefused:
        return None


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request. Raises Refused: it has more bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise RequestRefused(413, f"a request has at most {most} bytes")
    return bytes(body)


def text_of(request: Request, name: str) -> str | None:
    """A parameter that filters; empty means not given."""
    return request.query_params.get(name) or None


def only(request: Request, *known: str) -> None:
    """Refuse parameters that do not exist: a misspelt filter must not look like an unfiltered answer.

    Raises Refused: there is one.
    """
    for name in request.query_params:
        if name not in known:
            names = ", ".join(known) or "none"
            raise RequestRefused(422, f"{name[:40]}: no such parameter; known here: {names}")
