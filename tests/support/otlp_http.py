"""A raw client of OTLP over HTTP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
from google.protobuf.json_format import Parse
from google.rpc.status_pb2 import Status

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
ID = "0af7651916cd43dd8448eb211c80319c"


async def post(
    url: str, content: bytes | AsyncIterator[bytes], headers: dict[str, str] | None = None
) -> httpx.Response:
    """Send a body; protobuf unless said otherwise."""
    async with httpx.AsyncClient(timeout=20, verify=False) as client:  # no certificates to be read
        return await client.post(
            url, content=content, headers=PROTOBUF if headers is None else headers
        )


def head(*more: str) -> bytes:
    """The head of an export in protobuf, by hand."""
    lines = ("POST /v1/traces HTTP/1.1", "host: localhost", "content-type: application/x-protobuf")
    return "\r\n".join((*lines, *more, "", "")).encode()


def one_span(**fields: Any) -> bytes:
    """OTLP/JSON of one span."""
    plain = {"traceId": ID, "spanId": "b7ad6b7169203331", "name": "step", **fields}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [plain]}]}]}).encode()


def rejected(reply: httpx.Response) -> int:
    """How many spans a request in JSON that was taken lost."""
    assert reply.status_code == 200
    return int(reply.json().get("partialSuccess", {}).get("rejectedSpans", 0))


def status_of(reply: httpx.Response) -> Status:
    """The google.rpc.Status in the encoding that the reply names."""
    if reply.headers["content-type"] == JSON["content-type"]:
        return Parse(reply.text, Status())
    assert reply.headers["content-type"] == PROTOBUF["content-type"]
    return Status.FromString(reply.content)
