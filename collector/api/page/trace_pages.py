"""One trace: its page, its recording and its case as files."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import text_of
from collector.api.page.downloads import case, recording
from collector.api.page.rendering import Rendering
from collector.api.page.trace_view import trace_view
from collector.api.traces import FullTrace, Traces


class TracePages:
    """Files hold raw spans or texts of messages: there are none where no content is to be shown."""

    def __init__(self, traces: Traces, rendering: Rendering, *, link: str | None = None) -> None:
        """`link`: a URL with `{trace_id}`, which leads to the spans in the user's own backend."""
        self._link = link
        self._traces = traces
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """The page and the files."""
        return [
            Route("/trace", self.trace),
            Route("/trace/recording", self.recording),
            Route("/trace/case", self.case),
        ]

    async def trace(self, request: Request) -> Response:
        """Its scores, its conversation, its spans as a tree."""
        return await self._found(request, self._page)

    async def recording(self, request: Request) -> Response:
        """Its spans as a `.otlp` file."""
        return await self._found(request, self._recording)

    async def case(self, request: Request) -> Response:
        """A case for an expectations file, in YAML."""
        return await self._found(request, self._case)

    async def _found(self, request: Request, then: Callable[[FullTrace], Response]) -> Response:
        trace_id = text_of(request, "id")
        if trace_id is None:
            return self._rendering.missing("trace")
        trace_id = trace_id.lower()
        found = await self._traces.find(trace_id, then)
        return self._rendering.missing("trace", trace_id) if found is None else found

    def _page(self, found: FullTrace) -> Response:
        link = self._link and self._link.replace("{trace_id}", quote(_id(found)))
        return self._rendering.page("trace.html", view=trace_view(found), link=link)

    def _recording(self, found: FullTrace) -> Response:
        if not found.pieces:
            return self._rendering.missing("recording", _id(found))
        name = f"trace-{_id(found)}.otlp"
        return self._rendering.file(
            recording(found), name=name, media_type="application/octet-stream"
        )

    def _case(self, found: FullTrace) -> Response:
        if not found.pieces:
            return self._rendering.missing("recording", _id(found))
        name = f"case-{_id(found)}.yaml"
        return self._rendering.file(case(found), name=name, media_type="application/yaml")


def _id(found: FullTrace) -> str:
    return found.whole.trace_id
