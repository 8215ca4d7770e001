"""The page that puts evaluators beside what people said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.agreement_routes import FILTERS, Agreements, differing_shown
from collector.api.answers import text_of
from collector.api.off_loop import OffLoop
from collector.api.page.rendering import Rendering

ROWS = 100
DIFFERING = 50
"""Evaluators, and pairs that differ, on one page; what is beyond is counted."""


class AgreementPages:
    """Reads the index for each request."""

    def __init__(self, *, agreements: Agreements, off_loop: OffLoop, rendering: Rendering) -> None:
        self._agreements = agreements
        self._off_loop = off_loop
        self._rendering = rendering

    def routes(self) -> list[Route]:
        return [Route("/agreement", self.agreement)]

    async def agreement(self, request: Request) -> Response:
        """All evaluators, or one of them."""
        wanted = {name: text for name in FILTERS if (text := text_of(request, name)) is not None}
        return await self._off_loop.run(lambda: self._page(wanted))

    def _page(self, wanted: Mapping[str, str]) -> Response:
        agreed, differing = self._agreements.look(wanted)
        view: dict[str, Any] = {
            "evaluator": wanted.get("evaluator"),
            "rows": [each.shown() for each in agreed[:ROWS]],
            "more_rows": len(agreed[ROWS:]),
            "differing": [differing_shown(*each) for each in differing[:DIFFERING]],
        }
        return self._rendering.page("agreement.html", view=view)
