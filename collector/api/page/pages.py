"""The pages: one session. Those of agents, of all sessions, of a trace and of the service have files of their own."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import text_of
from collector.api.compare import Counted
from collector.api.findings import Findings
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.page.agent_pages import AgentPages
from collector.api.page.agreement_pages import AgreementPages
from collector.api.page.feedback_pages import FeedbackPages
from collector.api.page.rendering import Rendering
from collector.api.page.service_pages import ServicePages
from collector.api.page.session_pages import SessionPages
from collector.api.page.session_view import TRACES, session_view
from collector.api.page.trace_pages import TracePages
from collector.api.page.two_sides_pages import TwoSidesPages, Verdict
from collector.api.query import Query
from collector.api.traces import Traces
from collector.base.clock import Clock
from collector.config.tree import Config
from collector.records.standing import AgentLabels, Standings


class Pages:
    def __init__(  # noqa: PLR0913 - what its pages read, one by one
        self,
        *,
        query: Query,
        index: Index,
        traces: Traces,
        off_loop: OffLoop,
        findings: Findings,
        standings: Callable[[], Standings],
        config: Config,
        clock: Clock,
        service: ServicePages,
        verdict: Verdict,
        counted: Callable[[AgentLabels, str, str], Counted],
        feedback: FeedbackPages,
        agreement: AgreementPages,
    ) -> None:
        self._agreement_pages = agreement
        self._feedback_pages = feedback
        self._query = query
        self._off_loop = off_loop
        self._rendering = Rendering(config)
        self._agent_pages = AgentPages(
            index=index,
            findings=findings,
            off_loop=off_loop,
            standings=standings,
            rendering=self._rendering,
            config=config,
            clock=clock,
        )
        self._two_sides = TwoSidesPages(
            index=index,
            off_loop=off_loop,
            rendering=self._rendering,
            verdict=verdict,
            counted=counted,
            clock=clock,
        )
        self._session_pages = SessionPages(
            query=query,
            off_loop=off_loop,
            standings=standings,
            rendering=self._rendering,
            attributes=config.attributes.filter,
            clock=clock,
        )
        self._trace_pages = TracePages(traces, self._rendering, link=config.links.trace)
        self._service_pages = service

    def routes(self) -> list[Route]:
        return [
            *self._agent_pages.routes(),
            *self._two_sides.routes(),
            *self._session_pages.routes(),
            Route("/session", self.session),
            *self._trace_pages.routes(),
            *self._feedback_pages.routes(),
            *self._agreement_pages.routes(),
            *self._service_pages.routes(),
        ]

    async def session(self, request: Request) -> Response:
        """One session, its newest traces or those before one; the first one where several services have that id."""
        session_id, service = text_of(request, "id"), text_of(request, "service")
        before = text_of(request, "before")
        if session_id is None:
            return self._rendering.missing("session")
        return await self._off_loop.run(lambda: self._session(session_id, service, before))

    def _session(self, session_id: str, service: str | None, before: str | None) -> Response:
        part = self._query.session_part(session_id, service, most=TRACES, before=before)
        if part is None:
            return self._rendering.missing("session", session_id)
        return self._rendering.page("session.html", session=session_view(part))
