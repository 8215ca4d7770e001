"""What a provider may send: so much and no more, as it was asked for, without cookies and from where it was asked.

Imported with litellm alone. Its own client inflates a kilobyte to gigabytes, reads without an end, keeps cookies and
sends the question after a redirect; it searches the text of an error by regular expressions, 20 seconds for a megabyte.
"""

import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import httpx
import msgspec

LARGEST = 4 << 20
"""Bytes of an answer, also after inflating: vectors of 60 texts, or a hundred times the longest answer."""
LONGEST_ERROR = 16 << 10
"""Bytes of an error: half a second of litellm's search. What a provider refuses is named in the first few."""
MOST_PARTS = 10_000
"""Lists and objects of an answer, and brackets in its texts: of each that litellm does not know it writes a warning."""
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say that the bytes have gzip's header
_LEFT_OUT = frozenset(
    {b"content-encoding", b"content-length", b"location", b"set-cookie", b"transfer-encoding"}
)


class BoundedTransport(httpx.AsyncBaseTransport):
    """Reads each answer whole. One that is cut, or packed in another way, is not JSON and so refused."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        body = bytearray()
        try:
            async for chunk in cast(httpx.AsyncByteStream, response.stream):
                body += chunk
                if len(body) >= LARGEST:
                    break
        finally:
            await response.aclose()
        content = bytes(body[:LARGEST])
        if response.headers.get("content-encoding", "").strip().lower() == "gzip":
            with suppress(zlib.error):
                content = zlib.decompressobj(_GZIP).decompress(content, LARGEST)
        if not _is_answer(response.status_code, content):
            content = content[:LONGEST_ERROR]
        headers = [each for each in response.headers.raw if each[0].lower() not in _LEFT_OUT]
        return httpx.Response(response.status_code, headers=headers, content=content)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _is_answer(status: int, content: bytes) -> bool:
    if status // 100 != 2 or content.count(b"{") + content.count(b"[") > MOST_PARTS:
        return False
    try:
        fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bytes(fields.get("error", b"null")) == b"null"


def bound(handler: Any) -> None:
    """Make litellm's handler of HTTP, from which all its clients get their transport, give bounded ones."""
    make: Callable[..., httpx.AsyncBaseTransport | None] = handler.create_async_transport

    def bounded(*args: Any, **kwargs: Any) -> httpx.AsyncBaseTransport | None:
        made = make(*args, **kwargs)
        return None if made is None else BoundedTransport(made)

    handler.create_async_transport = staticmethod(bounded)
