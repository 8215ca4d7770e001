"""Where the page is below a host: `admin.base_path`, or what a proxy that strips says in `X-Forwarded-Prefix`.

A proxy may pass a path on whole, or take the prefix off and say it in the header, or take it off without a word. In
each case a request finds its route, and the links of the page stay below the prefix.
"""

from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from collector.config.values import is_base_path

_root: ContextVar[str] = ContextVar("root", default="")


def root() -> str:
    """What is before every path of a link of this request: empty, or `/one/or/more` without a slash behind."""
    return _root.get()


class BasePath:
    """ASGI middleware before every other: routes see paths without the prefix, links have it.

    `base_path`: `admin.base_path`.
    """

    def __init__(self, app: ASGIApp, base_path: str) -> None:
        self._app = app
        self._base = base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; `/prefix` alone is led to `/prefix/`, which relative addresses need."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        forwarded = forwarded_prefix(Headers(scope=scope).get("x-forwarded-prefix", ""))
        rest = path.removeprefix(self._base)
        if self._base and rest != path and rest[:1] in ("", "/"):
            outside = "" if forwarded == self._base else forwarded
            _root.set(outside + self._base)
            scope = {**scope, "path": rest or "/"}
            if not rest:
                asked = f"?{query.decode('latin-1')}" if (query := scope["query_string"]) else ""
                await RedirectResponse(f"{root()}/{asked}")(scope, receive, send)
                return
        else:
            _root.set(forwarded or self._base)
        await self._app(scope, receive, send)


def forwarded_prefix(header: str) -> str:
    """The prefix of the outermost proxy; empty where there is none, or it is not a path."""
    first = header.partition(",")[0].strip().removesuffix("/")
    return first if is_base_path(first) else ""
