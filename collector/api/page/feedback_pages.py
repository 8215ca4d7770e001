"""What people, code and models said of a trace or a session, on its page; and the thumbs with which one says it there.

A thumb is posted to the page itself. Whoever may read the page may give one; another site's page may not.
"""

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from collector.api.answers import RequestRefused, body_of, text_of
from collector.api.base_path import root
from collector.api.page.sheet import Sheet
from collector.api.page.site import Pages
from collector.base.errors import Permanent, Retryable
from collector.records.feedback import Feedback, FeedbackRules
from collector.records.sent_feedback import SentFeedback

NAME = "thumb"
"""Of what is said on a page: the second one about a trace or session replaces the first."""
LARGEST = 64 << 10  # bytes of a form
SHOWN = 50  # of what was said of one trace or session; the API has more
PATIENCE = 2.0
"""Seconds until the page is shown again, though the index does not have the thumb yet."""
_LOOK_EVERY = 0.1  # seconds between two looks into the index
_THUMBS = {"up": True, "down": False}


def said_view(feedback: Sequence[Feedback], sheet: Sheet) -> list[dict[str, Any]]:
    """What was said, the latest first, as the pages show it."""
    return sheet.rows(feedback, lambda each: _row(each, sheet), cost=300, most=SHOWN)


def _row(each: Feedback, sheet: Sheet) -> dict[str, Any]:
    is_thumb = each.value is None or each.value in (0.0, 1.0)
    value = each.label or ("" if is_thumb else f"{each.value:g}")
    return {
        "opinion": each.opinion,
        "name": sheet.name(each.name),
        "value": sheet.name(value),
        "comment": sheet.long(each.comment),
        "kind": each.kind,
        "time": each.time,
        "id": each.id,
    }


class FeedbackPages(Pages):
    def routes(self) -> list[Route]:
        return [
            Route("/trace", self.trace, methods=["POST"]),
            Route("/session", self.session, methods=["POST"]),
        ]

    async def trace(self, request: Request) -> Response:
        trace_id = (text_of(request, "id") or "").lower()
        about = SentFeedback(name=NAME, trace_id=trace_id)
        return await self._said(request, about, f"/trace?id={quote(trace_id)}")

    async def session(self, request: Request) -> Response:
        session_id, service = text_of(request, "id"), text_of(request, "service")
        about = SentFeedback(name=NAME, session_id=session_id, service=service)
        asked = urlencode({"service": service or "", "id": session_id or ""})
        return await self._said(request, about, f"/session?{asked}")

    async def _said(self, request: Request, about: SentFeedback, path: str) -> Response:
        """Write it, wait until the page has it, and lead back there. Raises Refused: what is wrong."""
        value, comment = await _form(request)
        given = replace(about, value=value, comment=comment)
        try:
            said = FeedbackRules.of(self.site.config).feedback(given, now=self.site.clock())
            await self.site.log.write([said.record])
        except Permanent as wrong:
            raise RequestRefused(422, str(wrong)) from wrong
        except Retryable as error:
            raise RequestRefused(503, f"not taken: {error}; try again in a few seconds") from error
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        while not await self.site.off_loop.run(lambda: self.site.query.has_feedback(said)):
            if loop.time() > end:
                break
            await asyncio.sleep(_LOOK_EVERY)
        return RedirectResponse(f"{root()}{path}#said", status_code=303)


async def _form(request: Request) -> tuple[bool, str | None]:
    """The thumb, and why. Raises Refused: another site's page sent it, or it is not a thumb."""
    if not _is_own_page(request):
        raise RequestRefused(403, "a thumb is given on this page, not on another site's")
    body = await body_of(request, LARGEST)
    fields = parse_qs(body.decode(errors="replace"), max_num_fields=10)
    thumb = fields.get("thumb", [""])[0]
    if thumb not in _THUMBS:
        raise RequestRefused(422, "thumb: expected up or down")
    return _THUMBS[thumb], fields.get("comment", [None])[0]


def _is_own_page(request: Request) -> bool:
    """Browsers say where a form is; what is not a browser says nothing, and has no one's password at hand."""
    where = request.headers.get("sec-fetch-site")
    if where is not None:
        return where in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
