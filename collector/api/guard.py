"""Who may read content: bearer tokens, and what answers without one.

/metrics /healthz /readyz    always
the rest, token set          with `Authorization: Bearer <token>`, or Basic with the token as password (browsers)
the rest, no token set       on loopback only, and only under a name of loopback: a web page that points a name of
its own at 127.0.0.1 must not read traces
"""

from __future__ import annotations

import base64
import binascii

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.api.answers import error
from collector.config.tree import Admin
from collector.runtime.http_server import BearerTokens
from collector.runtime.net import is_loopback

OPEN = frozenset({"/metrics", "/healthz", "/readyz"})
_CHALLENGE = {
    "www-authenticate": 'Bearer realm="spanwise", Basic realm="spanwise", charset="UTF-8"'
}


class Guard:
    """ASGI middleware in front of every route."""

    def __init__(self, app: ASGIApp, admin: Admin) -> None:
        self._app = app
        self._tokens = BearerTokens(admin.bearer_tokens)
        self._loopback = is_loopback(admin.host)
        self._host = admin.host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through, or answer 401 or 403."""
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, message = refusal
        challenge = _CHALLENGE if status == 401 else None
        await error(status, message, headers=challenge)(scope, receive, send)

    def _refusal(self, headers: Headers) -> tuple[int, str] | None:
        if self._tokens.required:
            if self._tokens.accepts(_credential(headers.get("authorization", ""))):
                return None
            return 401, "a token is needed: Authorization: Bearer <one of admin.bearer_tokens>"
        if not self._loopback:
            return 403, (
                "only /metrics, /healthz and /readyz answer here, because admin.host is not loopback "
                "and no token is set; set admin.bearer_tokens to read the page and /api/v1"
            )
        if not self._is_local_name(headers.get("host", "")):
            return 403, (
                "this page answers on localhost only; set admin.bearer_tokens to read it under another name"
            )
        return None

    def _is_local_name(self, host: str) -> bool:
        name = host.lower().rsplit("]", 1)[0].removeprefix("[") if "]" in host else ""
        name = name or host.lower().rsplit(":", 1)[0]
        return name == self._host or is_loopback(name) or name.endswith(".localhost")


def _credential(authorization: str) -> bytes:
    """The token of a Bearer header, or the password of a Basic one."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.strip().encode()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
