"""Times on the pages are in the zone of who looks: the browser says it in a cookie, and without one they are UTC.

Each says how long ago that is.
"""

import math
import re
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.base.clock import Clock

MINUTE = "%Y-%m-%d %H:%M"
COOKIE = "spanwise_zone"
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,2}")
_zone: ContextVar[str] = ContextVar("zone", default="UTC")
_now: ContextVar[float | None] = ContextVar("now", default=None)
_AGES = ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min"), (0, 1, "s"))
"""(Seconds from which on, seconds of the unit, its name): two of a unit are needed before it is used."""


class ViewerZone:
    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        """`clock`: Unix seconds, as the service counts them."""
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            named = unquote(HTTPConnection(scope).cookies.get(COOKIE, ""))
            _zone.set(named if _known(named) else "UTC")
            _now.set(self._clock())
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


def ago(time: float) -> str:
    """`18 s ago`, by the request's time; empty for what is to come, and outside a request."""
    now = _now.get()
    if now is None or not math.isfinite(time) or time > now:
        return ""
    age = now - time
    unit, name = next((unit, name) for least, unit, name in _AGES if age >= least)
    return f"{age // unit:.0f} {name} ago"


def since(time: float) -> str:
    """A moment to the minute, and how long ago that is."""
    if not math.isfinite(time):
        return ""
    shown = (shown_at(time, MINUTE), ago(time))
    return ", ".join(each for each in shown if each)


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
