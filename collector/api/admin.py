"""The admin listener: its application, who may read content, and its server.

Metrics and health answer in every role, the rest where there is an index.

/metrics /healthz /readyz    always
the rest, token set          with `Authorization: Bearer <token>`, or Basic with the token as password (browsers)
the rest, no token set       on loopback only, and only under a name of loopback: a web page that points a name of
its own at 127.0.0.1 must not read traces
"""

import asyncio
import base64
import binascii
import errno
import gzip
import logging
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.api.answers import RequestRefused, answer, error
from collector.api.base_path import BasePath
from collector.base import watch
from collector.base.bounded_protocol import Limits
from collector.base.errors import ConfigError
from collector.base.families import RuntimeFamilies
from collector.base.http_server import BearerTokens, GuestServer
from collector.base.lifecycle import Health
from collector.base.net import bind, connections, is_local_name, is_loopback
from collector.config.tree import Admin, Config
from evaluators.formulas.connexity import available_metrics as connexity_listing

# What was refused or went wrong: an error in JSON for programs, a page for browsers.

_log = logging.getLogger(__name__)
ErrorPage = Callable[[int, str], Response]
"""The page of a status and a message."""


def error_handlers(page: ErrorPage | None) -> dict[Any, Callable[[Request, Exception], Any]]:
    """For everything that a route may raise. `page`: makes pages; None: there are only errors in JSON."""

    async def answered(request: Request, raised: Exception) -> Response:
        status, headers = 500, None
        message = "this request failed inside Spanwise; the log of the service says why"
        if isinstance(raised, RequestRefused):
            status, message, headers = raised.status, raised.message, raised.headers
        elif isinstance(raised, HTTPException):
            status, headers = raised.status_code, raised.headers
            message = {
                404: f"there is nothing at {request.url.path[:200]}",
                405: f"{request.method} is not possible here",
            }.get(status, HTTPStatus(status).phrase)
        else:
            _log.error("A request for %s failed", request.url.path, exc_info=raised)
        if page is None or not _is_read_by_a_person(request):
            return error(status, message, headers=headers)
        made = page(status, message)
        made.headers.update(headers or {})
        return made

    return dict.fromkeys((HTTPException, RequestRefused, Exception), answered)


def _is_read_by_a_person(request: Request) -> bool:
    is_api = request.url.path.startswith(("/api/", "/config/"))
    return not is_api and "text/html" in request.headers.get("accept", "")


Exposition = Callable[[str], tuple[bytes, str]]
"""The request's Accept header in; the exposition and its content type out."""
_FAST = 1  # level of gzip: a tenth of the bytes for little time
OPEN = frozenset({"/metrics", "/healthz", "/readyz"})  # paths that answer without a token
_CHALLENGE = {
    "www-authenticate": 'Bearer realm="spanwise", Basic realm="spanwise", charset="UTF-8"'
}
MAX_CONNECTIONS = 200
"""Above, the one that has been idle longest is closed for the new one: /metrics and health are always answered."""
PATIENCE = 3  # seconds that open requests get when the service stops


def build_app(
    *,
    config: Config,
    exposition: Exposition,
    health: Health,
    routes: Sequence[BaseRoute] = (),
    error_page: ErrorPage | None = None,
) -> Starlette:
    """The admin application. Without `routes` (roles other than publish) it still has metrics and health.

    `error_page`: what browsers see of an error; None: they see it as programs do.
    """

    async def metrics(request: Request) -> Response:
        body, kind = exposition(request.headers.get("accept", ""))
        headers = {"content-type": kind, "cache-control": "no-store", "vary": "accept-encoding"}
        if takes_gzip(request.headers.get("accept-encoding", "")):
            body = await asyncio.to_thread(gzip.compress, body, _FAST)
            headers["content-encoding"] = "gzip"
        return Response(body, headers=headers)

    async def healthz(_: Request) -> Response:
        return answer({"status": "ok"})

    async def readyz(_: Request) -> Response:
        return answer({"status": health.state}, status=200 if health.state == "ready" else 503)

    async def available_metrics(_: Request) -> Response:
        return answer(connexity_listing())

    app = Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/config/available-metrics", available_metrics),
            *routes,
        ],
        middleware=[
            Middleware(BasePath, base_path=config.admin.base_path),
            Middleware(Guard, admin=config.admin),
        ],
        exception_handlers=error_handlers(error_page),
    )
    app.router.redirect_slashes = False
    return app


def takes_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` header asks for gzip, which `q=0` takes back."""
    for each in accepted.split(","):
        coding, _, quality = each.replace(" ", "").lower().partition(";q=")
        if coding == "gzip":
            return quality.strip("0.") != "" if quality else True
    return False


class Guard:
    def __init__(self, app: ASGIApp, admin: Admin) -> None:
        self._app = app
        self._tokens = BearerTokens(admin.bearer_tokens)
        self._loopback = is_loopback(admin.host)
        self._host = admin.host

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
        if not is_local_name(headers.get("host", ""), self._host):
            return 403, (
                "this page answers on localhost only; set admin.bearer_tokens to read it under another name"
            )
        return None


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


class AdminServer:
    """Serves `app` on `admin.host:admin.port`. Signals of the process stay with whoever started it."""

    def __init__(self, app: ASGIApp, admin: Admin, families: RuntimeFamilies) -> None:
        self._app = app
        self._admin = admin
        self._closed = families.closed("admin")
        self._socket: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port it is bound to: what the system chose, when the configuration says 0."""
        return int(self.bind().getsockname()[1])

    def bind(self) -> socket.socket:
        """Take the port, unless it is bound already; the listening socket.

        Raises ConfigError: it is taken, or not ours to take.
        """
        if self._socket is not None:
            return self._socket
        host, port = self._admin.host, self._admin.port
        try:
            listener = bind(host, port, backlog=128)
        except OSError as error:
            raise ConfigError(_why(error, host, port)) from error
        listener.setblocking(False)
        self._socket = listener
        return listener

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve until `stopping` is set, then let open requests finish for a few seconds."""
        limits = Limits(max_connections=connections(MAX_CONNECTIONS, share=1 / 8))
        server = GuestServer(self._app, limits=limits, closed=self._closed)
        listener = self.bind()
        try:
            async with asyncio.TaskGroup() as tasks:
                serving = tasks.create_task(server.serve(sockets=[listener]), name="admin-http")
                await watch.until(stopping, [serving])
                server.stop(PATIENCE)
        finally:
            listener.close()
            self._socket = None


def _why(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return f'admin.host: "{host}" is not an address of this machine'
    if error.errno == errno.EADDRINUSE:
        return (
            f"admin.port: {host}:{port} is taken by another process; set admin.port to a free one"
        )
    if error.errno == errno.EACCES:
        return f"admin.port: this user may not listen on {host}:{port}; use a port above 1023"
    return f"admin.host: cannot listen on {host}:{port} ({error.strerror})"
