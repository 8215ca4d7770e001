"""Times on the pages are in the zone of who looks: the browser says it in a cookie, and without one they are UTC."""

import re
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

MINUTE = "%Y-%m-%d %H:%M"
COOKIE = "spanwise_zone"
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,2}")
_zone: ContextVar[str] = ContextVar("zone", default="UTC")


class ViewerZone:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            named = unquote(HTTPConnection(scope).cookies.get(COOKIE, ""))
            _zone.set(named if _known(named) else "UTC")
        await self._app(scope, receive, send)


def zone_name() -> str:
    """The zone of this request: `Europe/Oslo`, or `UTC`."""
    return _zone.get()


def shown_at(time: float, form: str) -> str:
    """A moment (Unix seconds) in the viewer's zone, in the form of strftime; the first one for what cannot be shown."""
    name = _zone.get()
    zone = UTC if name == "UTC" else ZoneInfo(name)
    try:
        return datetime.fromtimestamp(time, zone).strftime(form)
    except (OverflowError, OSError, ValueError):
        return datetime.fromtimestamp(0, zone).strftime(form)


@lru_cache(maxsize=256)
def _known(name: str) -> bool:
    """Whether this machine knows the zone; whoever sends a request chose the name."""
    if not _NAME.fullmatch(name):
        return False
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return False
    return True
