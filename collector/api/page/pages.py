"""The page's three views: overview, one session, one trace."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api import query as shapes
from collector.api.answers import Refused, cursor_of, text_of
from collector.api.off_loop import OffLoop
from collector.api.page import views
from collector.api.page.agent_rows import agent_rows, running_away
from collector.api.query import Query
from collector.api.traces import FullTrace, Traces
from collector.config.tree import Config
from collector.records.standing import Standings

_HERE = Path(__file__).parent
SESSIONS = 30
AGENTS = 100


class Pages:
    """Every text is escaped; a page may load nothing but itself (Content-Security-Policy)."""

    def __init__(
        self,
        *,
        query: Query,
        traces: Traces,
        off_loop: OffLoop,
        standings: Callable[[], Standings],
        config: Config,
    ) -> None:
        self._query = query
        self._traces = traces
        self._off_loop = off_loop
        self._standings = standings
        self._command = views.first_command(config)
        self._redacted = config.redaction.content == "drop"
        self._style = (_HERE / "style.css").read_text(encoding="utf-8")
        self._templates = Environment(
            loader=FileSystemLoader(_HERE),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(views.FILTERS)

    def routes(self) -> list[Route]:
        """The page and its views."""
        return [
            Route("/", self.overview),
            Route("/session", self.session),
            Route("/trace", self.trace),
        ]

    async def overview(self, request: Request) -> Response:
        """Agents and sessions."""
        chosen = {"service": text_of(request, "service"), "agent": text_of(request, "agent")}
        standings = self._standings()  # here: the exporter's state belongs to the event loop
        return await self._off_loop.run(lambda: self._overview(chosen, _asked(request), standings))

    def _overview(
        self, chosen: dict[str, str | None], cursor: bytes | None, standings: Standings
    ) -> Response:
        agents = self._query.agents(limit=AGENTS, service=chosen["service"], agent=chosen["agent"])
        sessions = self._query.sessions(limit=SESSIONS, cursor=cursor, **chosen)
        runaways = running_away(standings)
        return self._rendered(
            "overview.html",
            agents=agent_rows(agents.items, standings),
            sessions=[
                {
                    **shapes.session_summary(row),
                    "unscored": row.unscored,
                    "runs_away": (row.service, row.session_id) in runaways,
                }
                for row in sessions.items
            ],
            following=sessions.next,
            cursor=cursor,
            chosen=chosen,
            command=self._command,
        )

    async def session(self, request: Request) -> Response:
        """One session; the first one where several services have that id."""
        session_id, service = text_of(request, "id"), text_of(request, "service")
        if session_id is None:
            return self._nothing("session")
        return await self._off_loop.run(lambda: self._session(session_id, service))

    def _session(self, session_id: str, service: str | None) -> Response:
        found = self._query.session(session_id, service)
        if not found:
            return self._nothing("session", session_id)
        others = [shown.entry.service for shown in found[1:]]
        return self._rendered("session.html", session=views.session(found[0], others))

    async def trace(self, request: Request) -> Response:
        """One trace: its spans as a tree, its tool calls, its scores."""
        trace_id = text_of(request, "id")
        if trace_id is None:
            return self._nothing("trace")
        trace_id = trace_id.lower()
        found = await self._traces.find(trace_id, self._trace)
        return self._nothing("trace", trace_id) if found is None else found

    def _trace(self, found: FullTrace) -> Response:
        return self._rendered("trace.html", view=views.trace(found))

    def _nothing(self, kind: str, subject: str = "") -> Response:
        """Without a subject the address names none."""
        status = 404 if subject else 400
        return self._rendered("missing.html", status=status, kind=kind, subject=subject[:200])

    def _rendered(self, template: str, *, status: int = 200, **given: Any) -> Response:
        nonce = secrets.token_urlsafe(16)
        text = self._templates.get_template(template).render(
            nonce=nonce, style=self._style, redacted=self._redacted, **given
        )
        return Response(text, status_code=status, media_type="text/html", headers=_headers(nonce))


def _asked(request: Request) -> bytes | None:
    """A cursor that is none starts at the top: people edit addresses."""
    try:
        return cursor_of(request)
    except Refused:
        return None


def _headers(nonce: str) -> dict[str, str]:
    policy = (
        "default-src 'none'; "
        f"style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; "
        "img-src data:; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
