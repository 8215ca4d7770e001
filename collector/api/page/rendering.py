"""Pages and files as answers. Every text is escaped; a page may load nothing but itself (Content-Security-Policy)."""

import re
import secrets
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from collector.api.base_path import root
from collector.api.page import views
from collector.api.viewer_zone import zone_name
from collector.config.tree import Config

_HERE = Path(__file__).parent
_TITLES = {
    404: "There is nothing at this address",
    500: "This page failed",
    503: "Not now",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Rendering:
    """The templates and the style beside this file, read once."""

    def __init__(self, config: Config) -> None:
        self._redacted = config.redaction.content == "drop"
        sheets = sorted(_HERE.glob("*.css"))
        self._style = "".join(each.read_text(encoding="utf-8") for each in sheets)
        self._templates = Environment(
            loader=FileSystemLoader(_HERE),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(views.FILTERS)
        cast("dict[str, object]", self._templates.globals)["root"] = root
        cast("dict[str, object]", self._templates.globals)["zone"] = zone_name

    def page(self, template: str, *, status: int = 200, **given: Any) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = self._templates.get_template(template).render(
            nonce=nonce, style=self._style, redacted=self._redacted, **given
        )
        return Response(text, status_code=status, media_type="text/html", headers=_headers(nonce))

    def error(self, status: int, message: str) -> Response:
        title = _TITLES.get(status, "This cannot be shown")
        return self.page("error.html", status=status, title=title, message=message)

    def missing(self, kind: str, subject: str = "") -> Response:
        """A page that says which session, trace or recording is not here; without a subject, that the id is."""
        status = 404 if subject else 400
        return self.page("missing.html", status=status, kind=kind, subject=subject[:200])

    def file(self, body: bytes | str, *, name: str, media_type: str) -> Response:
        disposition = f'attachment; filename="{_UNSAFE.sub("_", name)}"'
        headers = {**_headers(""), "content-disposition": disposition}
        return Response(body, media_type=media_type, headers=headers)


def _headers(nonce: str) -> dict[str, str]:
    """Without a nonce nothing may be loaded at all."""
    own = (
        f"style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; "
        "img-src data:; connect-src 'self'; form-action 'self'; "
    )
    policy = f"default-src 'none'; {own if nonce else ''}base-uri 'none'; frame-ancestors 'none'"
    return {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
