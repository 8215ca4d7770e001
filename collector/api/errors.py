"""What was refused or went wrong: an error in JSON for programs, a page for browsers."""

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from collector.api.answers import RequestRefused, error

_log = logging.getLogger(__name__)
ErrorPage: TypeAlias = Callable[[int, str], Response]
"""The page of a status and a message."""


class Errors:
    """Handlers for everything that a route may raise. `page`: makes pages; None: there are only errors in JSON."""

    def __init__(self, page: ErrorPage | None) -> None:
        self._page = page

    def handlers(self) -> dict[Any, Callable[[Request, Exception], Any]]:
        return {
            HTTPException: self._http,
            RequestRefused: self._refused,
            Exception: self._unexpected,
        }

    async def _refused(self, request: Request, refused: Exception) -> Response:
        if not isinstance(refused, RequestRefused):
            raise refused
        return self._answer(request, refused.status, refused.message, refused.headers)

    async def _http(self, request: Request, raised: Exception) -> Response:
        if not isinstance(raised, HTTPException):
            raise raised
        message = {
            404: f"there is nothing at {request.url.path[:200]}",
            405: f"{request.method} is not possible here",
        }.get(raised.status_code, HTTPStatus(raised.status_code).phrase)
        return self._answer(request, raised.status_code, message, raised.headers)

    async def _unexpected(self, request: Request, raised: Exception) -> Response:
        _log.error("A request for %s failed", request.url.path, exc_info=raised)
        message = "this request failed inside Spanwise; the log of the service says why"
        return self._answer(request, 500, message)

    def _answer(
        self, request: Request, status: int, message: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        if self._page is None or not _is_read_by_a_person(request):
            return error(status, message, headers=headers)
        page = self._page(status, message)
        page.headers.update(headers or {})
        return page


def _is_read_by_a_person(request: Request) -> bool:
    is_api = request.url.path.startswith(("/api/", "/config/"))
    return not is_api and "text/html" in request.headers.get("accept", "")
