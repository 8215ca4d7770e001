"""Answers of something that stands where a tool should be, or of a tool that means harm: as bytes on the wire."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

LOGIN = b"<html><body>Please log in</body></html>"


def answer(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """The whole answer, with headers in the form `content_type`."""
    lines = {
        "content-length": str(len(body)),
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def _bomb(layers: int) -> bytes:
    """64 MiB of zeros below so many layers of gzip."""
    body = bytes(64 << 20)
    for _ in range(layers):
        body = gzip.compress(body, 1 if len(body) > 1 << 20 else 9)
    return body


NOT_THE_TOOLS: Mapping[str, bytes] = {
    "a login page": answer(LOGIN, content_type="text/html"),
    "a login page of no type": answer(LOGIN),
    "a login page under 202": answer(LOGIN, "202 Accepted", content_type="text/html"),
    "gzip of gzip": answer(_bomb(2), content_encoding="gzip, gzip"),
    "gzip that inflates to 64 MiB": answer(_bomb(1), content_encoding="gzip"),
    "a page in gzip": answer(gzip.compress(LOGIN), content_encoding="gzip"),
    "gzip that is none": answer(b"x" * 99, content_encoding="gzip"),
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "nothing": b"",
    "an answer that is cut off": answer(b"{}")[:-1],
    "a length that is no number": b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}",
    "a header without an end": b"HTTP/1.1 200 OK\r\nx: " + b"y" * (1 << 20),
    "a redirect that sets a cookie": answer(
        b"", "302 Found", location="http://127.0.0.1:1/login", set_cookie="session=1; path=/"
    ),
    "a redirect to nowhere": answer(b"", "302 Found", location="http://[::"),
    "an outage": answer(b"\xff\xfe", "503 Service Unavailable", retry_after="9" * 400),
}
"""None of them says that something was taken, of whatever tool."""
NOT_THE_TOOLS_JSON: Mapping[str, bytes] = {
    "a login page in words": answer(b"Please log in", content_type="text/plain"),
    "a refusal in JSON": answer(
        b'{"ok": false, "error": "no_login"}', content_type="application/json"
    ),
    "an array": answer(b"[]", content_type="application/json"),
    "JSON 100,000 deep": answer(b"[" * 100_000, content_type="application/json"),
    "a field, 100,000 deep": answer(b'{"data":' * 100_000 + b"1", content_type="application/json"),
    "JSON that is not Unicode": answer(b'{"data": "\xff"}', content_type="application/json"),
    "zstd": answer(
        b"\x28\xb5\x2f\xfd" + bytes(99), content_encoding="zstd", content_type="text/plain"
    ),
    "a body without an end": answer(b"x" * (3 << 20), content_type="text/plain"),
}
"""Nor these, where the tool promises more than any 2xx."""
_JSON = {"content_type": "application/json"}
NOT_A_JUDGES: Mapping[str, bytes] = {
    "a million choices": answer(b'{"choices":[' + b"[]," * (1 << 20) + b"1]}", **_JSON),
    "a long error in a 200": answer(b'{"error":{"message":"' + b"x" * (1 << 20) + b'"}}', **_JSON),
    "a long error": answer(b'{"error":{"message":"' + b"x" * (1 << 20) + b'"}}', "403 No", **_JSON),
    "a long text": answer(b"x y " * (1 << 18), "500 No", content_type="text/plain"),
    "an object of anything": answer(b'{"x":"' + b"x" * (3 << 20) + b'"}', **_JSON),
    "choices that are text": answer(b'{"choices":"' + b"x" * (1 << 20) + b'"}', **_JSON),
}
"""Nor these, which cost a judge's library seconds to minutes."""


@dataclass
class HostileServer:
    """What it answers to everything, and the heads of what it was asked."""

    url: str = ""
    reply: bytes = b""
    heads: list[str] = field(default_factory=list[str])


@contextlib.asynccontextmanager
async def hostile_server() -> AsyncGenerator[HostileServer]:
    """On loopback, for the time of the block; each connection has one answer."""
    made = HostileServer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            made.heads.append(head)
            length = head.partition("content-length: ")[2].partition("\r\n")[0]
            await reader.readexactly(int(length or 0))
            writer.write(made.reply)
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made
