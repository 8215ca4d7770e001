"""The admin application: metrics and health in every role, the rest where there is an index."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from collector.api.answers import Refused, answer, error
from collector.api.guard import Guard
from collector.config.tree import Config
from collector.runtime.health import Health
from evaluators.formulas.criteria import available_metrics as connexity_listing

_log = logging.getLogger(__name__)

Exposition: TypeAlias = Callable[[str], tuple[bytes, str]]
"""The request's Accept header in; the exposition and its content type out."""


def build_app(
    *,
    config: Config,
    exposition: Exposition,
    health: Health,
    routes: Sequence[BaseRoute] = (),
) -> Starlette:
    """The admin application. Without `routes` (roles other than publish) it still has metrics and health."""

    async def metrics(request: Request) -> Response:
        body, kind = exposition(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": kind, "cache-control": "no-store"})

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
        middleware=[Middleware(Guard, admin=config.admin)],
        exception_handlers={HTTPException: _http_error, Refused: _refused, Exception: _unexpected},
    )
    app.router.redirect_slashes = False
    return app


async def _refused(_: Request, refused: Exception) -> Response:
    if not isinstance(refused, Refused):
        raise refused
    return error(refused.status, refused.message, headers=refused.headers)


async def _http_error(request: Request, raised: Exception) -> Response:
    if not isinstance(raised, HTTPException):
        raise raised
    message = {
        404: f"there is nothing at {request.url.path[:200]}",
        405: f"{request.method} is not possible here",
    }.get(raised.status_code, HTTPStatus(raised.status_code).phrase)
    return error(raised.status_code, message, headers=raised.headers)


async def _unexpected(request: Request, raised: Exception) -> Response:
    _log.error("A request for %s failed", request.url.path, exc_info=raised)
    return error(500, "this request failed inside Spanwise; the log of the service says why")
