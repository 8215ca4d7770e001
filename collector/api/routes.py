"""The endpoints that read the index."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from collector.api import query as shapes
from collector.api.agents import agent_shown, running_away
from collector.api.answers import (
    NEVER_KEPT,
    RequestRefused,
    answer,
    cursor_of,
    limit_of,
    listing,
    only,
    text_of,
)
from collector.api.page.site import Site
from collector.api.session_filter import PARAMETERS, filter_of, sort_of
from collector.api.store import AgentEntry
from collector.api.stream import CLIENTS, Full, Stream, place_of
from collector.api.traces import FullTrace
from collector.api.what_changed import Differing
from collector.base.printable import cell
from collector.base.telemetry import short
from collector.records.standing import Standings

COLUMNS = (
    *("service", "session_id", "agent", "agent_version", "started", "last", "closed", "traces"),
    *("reliability", "consistency", "work_baseline", "seconds", "cost_usd", "errors", "question"),
)
"""Of the list of sessions as CSV."""


@dataclass(frozen=True, slots=True)
class Routes:
    site: Site
    differing: Callable[[Sequence[AgentEntry], Standings], Differing]
    live: Stream
    listed: Callable[[], Sequence[Mapping[str, Any]]]  # every evaluator

    def routes(self) -> list[Route]:
        """Everything under `/api/v1`."""
        return [
            Route("/api/v1/evaluators", self.evaluators),
            Route("/api/v1/agents", self.agents),
            Route("/api/v1/sessions", self.sessions),
            Route("/api/v1/sessions/{session_id:path}", self.session),
            Route("/api/v1/traces/{trace_id}", self.trace),
            Route("/api/v1/signals", self.signals),
            Route("/api/v1/signals/stream", self.stream),
        ]

    async def evaluators(self, request: Request) -> Response:
        only(request)
        external = await self.site.off_loop.run(self.site.query.externals)
        return answer({"items": list(self.listed()), "next": None, "external": external})

    async def agents(self, request: Request) -> Response:
        """Agents seen."""
        only(request, "limit", "cursor")
        limit, cursor = limit_of(request), cursor_of(request)
        standings = self.site.standings()  # here: the exporter's state belongs to the event loop

        def agents() -> Response:
            page = self.site.query.agents(limit=limit, cursor=cursor)
            differs = self.differing(page.items, standings)
            keys = ((short(each.service), short(each.agent)) for each in page.items)
            shown = [
                agent_shown(each, standings, differs.get(key))
                for each, key in zip(page.items, keys, strict=True)
            ]
            return listing(shown, page.next)

        return await self.site.off_loop.run(agents)

    async def sessions(self, request: Request) -> Response:
        """Sessions, newest first unless they are sorted otherwise."""
        only(request, *PARAMETERS, "limit", "cursor", "format")
        form = text_of(request, "format") or "json"
        if form not in ("json", "csv"):
            raise RequestRefused(422, f"format: expected json or csv, got `{form[:40]}`")
        given = request.query_params
        wanted, wrong = filter_of(
            given, now=self.site.clock(), running_away=lambda: running_away(self.site.standings())
        )
        sort, unsorted = sort_of(given, "newest")
        for each in (*wrong, *unsorted):
            raise RequestRefused(422, each)
        limit, cursor = limit_of(request), cursor_of(request)

        def sessions() -> Response:
            page = self.site.query.sessions(wanted, sort=sort, limit=limit, cursor=cursor)
            shown = [shapes.session_summary(session) for session in page.items]
            return listing(shown, page.next) if form == "json" else _as_csv(shown)

        return await self.site.off_loop.run(sessions)

    async def session(self, request: Request) -> Response:
        """One session; a list where several services have that id."""
        only(request, "service")
        session_id = cast(str, request.path_params["session_id"])
        service = text_of(request, "service")

        def session() -> Response:
            found = self.site.query.session(session_id, service)
            shown = [shapes.session_shown(each) for each in found]
            if not shown:
                raise RequestRefused(404, f"no session `{session_id[:200]}` in the index")
            return answer(shown[0]) if len(shown) == 1 else listing(shown, None)

        return await self.site.off_loop.run(session)

    async def trace(self, request: Request) -> Response:
        """One trace with its spans and signals."""
        only(request)
        trace_id = cast(str, request.path_params["trace_id"]).lower()
        found = await self.site.traces.find(trace_id, _trace)
        if found is None:
            raise RequestRefused(404, f"no trace `{trace_id[:200]}` in the index")
        return found

    async def signals(self, request: Request) -> Response:
        """Signals, newest first."""
        only(request, "session_id", "trace_id", "evaluator", "limit", "cursor")
        asked = partial(
            self.site.query.signals,
            session_id=text_of(request, "session_id"),
            trace_id=text_of(request, "trace_id"),
            evaluator=text_of(request, "evaluator"),
            limit=limit_of(request),
            cursor=cursor_of(request),
        )

        def signals() -> Response:
            page = asked()
            return listing(page.items, page.next)

        return await self.site.off_loop.run(signals)

    async def stream(self, request: Request) -> Response:
        """Signals as server-sent events: from now on, or after the event that `Last-Event-ID` names."""
        only(request)
        last = request.headers.get("last-event-id")
        try:
            events = self.live.subscribe(None if last is None else place_of(last))
        except ValueError as wrong:
            raise RequestRefused(422, str(wrong)) from wrong
        except Full as full:
            message = f"{CLIENTS} clients follow the stream, and no more may; close one of them or try again later"
            raise RequestRefused(503, message) from full
        return StreamingResponse(
            events,
            media_type="text/event-stream",
            headers={
                "cache-control": "no-store",
                "x-accel-buffering": "no",
                "connection": "close",  # else it would stay open, silent, once the stream has ended
            },
        )


def _trace(found: FullTrace) -> Response:
    shown = found.shown
    return answer(
        {
            "trace": found.trace,
            "spans": found.spans,
            "signals": shown.signals,
            **shapes.feedback_shown(shown.feedback),
        }
    )


def _as_csv(rows: Sequence[Mapping[str, Any]]) -> Response:
    """Sessions, one row each; fields within fields are left out."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([cell(each[name]) for name in COLUMNS] for each in rows)
    return Response(text.getvalue(), media_type="text/csv", headers=NEVER_KEPT)
