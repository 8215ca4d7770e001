"""The pages: one session. Those of agents, of all sessions, of a trace and of the service have files of their own."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.answers import text_of
from collector.api.page.agent_pages import AgentPages
from collector.api.page.agreement_pages import AgreementPages
from collector.api.page.feedback_pages import FeedbackPages
from collector.api.page.service_pages import ServicePages
from collector.api.page.session_pages import SessionPages
from collector.api.page.session_view import TRACES, session_view
from collector.api.page.site import Site
from collector.api.page.trace_pages import TracePages
from collector.api.page.two_sides_pages import TwoSidesPages


class Pages:
    def __init__(self, site: Site) -> None:
        self._site = site

    def routes(self) -> list[Route]:
        kinds = (
            AgentPages,
            TwoSidesPages,
            SessionPages,
            TracePages,
            FeedbackPages,
            AgreementPages,
            ServicePages,
        )
        others = [route for kind in kinds for route in kind(self._site).routes()]
        return [*others, Route("/session", self.session)]

    async def session(self, request: Request) -> Response:
        """One session, its newest traces or those before one; the first one where several services have that id."""
        session_id, service = text_of(request, "id"), text_of(request, "service")
        before = text_of(request, "before")
        if session_id is None:
            return self._site.rendering.missing("session")
        return await self._site.off_loop.run(lambda: self._session(session_id, service, before))

    def _session(self, session_id: str, service: str | None, before: str | None) -> Response:
        part = self._site.query.session_part(session_id, service, most=TRACES, before=before)
        if part is None:
            return self._site.rendering.missing("session", session_id)
        return self._site.rendering.page("session.html", session=session_view(part))
