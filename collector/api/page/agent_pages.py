"""The overview and the page of one agent."""

import math
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from collector.api.agents import standing_of
from collector.api.answers import RequestRefused, cursor_or_top, text_of
from collector.api.base_path import root
from collector.api.charts import IndexReader, PlacedVersion
from collector.api.page.agent import BEHIND, AgentRequest, agent_page
from collector.api.page.overview import PARTS, Badge, badges, overview
from collector.api.page.site import Pages
from collector.api.page.timespan import LENGTHS, timespan
from collector.api.store import AgentEntry
from collector.records.standing import Standings

AGENTS = 50  # versions of agents on a page of the overview
PINNED = 20  # agents that need attention, on every page
PATIENCE = 0.05
"""Seconds after which the overview begins no other trace to look for what it lacks: the next one goes on."""


class AgentPages(Pages):
    def routes(self) -> list[Route]:
        return [Route("/", self.overview), Route("/agent", self.agent)]

    async def overview(self, request: Request) -> Response:
        """Every agent, or those of a service; the address of one agent leads to its page."""
        service, agent = text_of(request, "service"), text_of(request, "agent")
        if service is not None and agent is not None:
            return RedirectResponse(
                f"{root()}/agent?{urlencode({'service': service, 'agent': agent})}"
            )
        cursor, length = cursor_or_top(request), text_of(request, "range")
        standings = self.site.standings()  # here: the exporter's state belongs to the event loop
        found = await self._badges()

        def page() -> Response:
            now = self.site.clock()
            with self.site.index.reading() as reader:
                placed, following = reader.placed(cursor, service, agent, AGENTS)
                if service is None and agent is None:
                    placed = [*_pinned(reader, standings, placed), *placed]
                oldest = reader.oldest()
                newest = max((each.entry.last / 1e6 for each in placed), default=None)
                seen = [each for each in (oldest, newest) if each is not None]
                span = timespan(length, now=now, seen=seen, since=None, parts=PARTS)
                rows = overview(reader, placed, standings, span, found, now)
            exporters = self.site.config.receiver.exporters(self.site.ports())
            return self.site.rendering.page(
                "overview.html",
                agents=rows,
                span=span,
                lengths=list(LENGTHS),
                chosen={"service": service, "agent": agent},
                cursor=cursor is not None,
                following=following,
                command="\n".join(f"{each} python my_agent.py" for each in exporters),
            )

        return await self.site.off_loop.run(page)

    async def _badges(self) -> Mapping[str, Badge]:
        """None while too many others wait for traces: the overview is there without them."""
        try:
            return badges(await self.site.findings.now(PATIENCE))
        except RequestRefused:
            return {}

    async def agent(self, request: Request) -> Response:
        """One agent: its charts, what changed, its versions."""
        service, agent = text_of(request, "service"), text_of(request, "agent")
        if service is None or agent is None:
            return self.site.rendering.missing("agent")
        since = _moment(text_of(request, "since"))
        asked = AgentRequest(service, agent, text_of(request, "range"), since)
        standing = standing_of(AgentEntry(service=service, agent=agent), self.site.standings())

        def page() -> Response:
            settle = self.site.config.windows.agent.settle
            with self.site.index.reading() as reader:
                view = agent_page(reader, asked, standing, now=self.site.clock(), settle=settle)
            if view is None:
                return self.site.rendering.missing("agent", agent)
            link = self.site.config.links.agent
            for place, name in (("{service}", service), ("{agent}", agent)):
                link = link and link.replace(place, quote(name, safe=""))
            return self.site.rendering.page(
                "agent.html", asked=asked, view=view, behind=BEHIND, link=link
            )

        return await self.site.off_loop.run(page)


def _pinned(
    reader: IndexReader, standings: Standings, placed: list[PlacedVersion]
) -> list[PlacedVersion]:
    """The agents with a drop or a runaway that the page does not hold anyway."""
    there = {(each.entry.service, each.entry.agent) for each in placed}
    wanted = [
        key for key, each in standings.items() if (each.drops or each.runaways) and key not in there
    ]
    found = [reader.placed(None, *key, AGENTS)[0] for key in wanted[:PINNED]]
    return [each for versions in found for each in versions]


def _moment(text: str | None) -> float | None:
    """Unix seconds; None for what is not a moment."""
    try:
        moment = float(text or "nan")
    except ValueError:
        return None
    return moment if math.isfinite(moment) and 0 <= moment < 1e11 else None
