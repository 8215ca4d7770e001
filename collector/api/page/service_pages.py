"""Pages about the service itself."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.about import About, Row
from collector.api.agreement_routes import Agreements
from collector.api.findings import Findings
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.page.rendering import Rendering
from collector.api.page.service_view import catalogue_view, health_view, judge_view
from collector.api.vitals import Vitals
from collector.api.what_changed import scores_of
from collector.base.lifecycle import Health
from collector.config.tree import Config

SCORED = 200
"""The newest sessions of which the page of the evaluators shows the scores: as many as a side of a comparison has."""


class ServicePages:
    def __init__(  # noqa: PLR0913 - its collaborators, one by one
        self,
        *,
        config: Config,
        about: About,
        findings: Findings,
        vitals: Vitals,
        health: Health,
        rendering: Rendering,
        agreements: Agreements,
        index: Index,
        off_loop: OffLoop,
    ) -> None:
        self._index = index
        self._off_loop = off_loop
        self._agreements = agreements
        self._config = config
        self._about = about
        self._findings = findings
        self._vitals = vitals
        self._health = health
        self._rendering = rendering

    def routes(self) -> list[Route]:
        return [
            Route("/evaluators", self.evaluators),
            Route("/health", self.health),
            Route("/help", self.help),
        ]

    async def evaluators(self, _: Request) -> Response:
        judge = judge_view(self._config, self._vitals.now()["judge"])
        rows = self._about.catalogue()
        agreed = [each.shown() for each in self._agreements.now if each.agreement.rank is not None]
        return await self._off_loop.run(lambda: self._evaluators(judge, rows, agreed))

    def _evaluators(
        self, judge: Mapping[str, Any], rows: Sequence[Row], agreed: Sequence[Row]
    ) -> Response:
        with self._index.reading() as reader:
            names = reader.names()
            scores = [scores_of(reader.outcomes(row), names) for row in reader.newest(SCORED)]
        view = catalogue_view(rows, agreed, scores)
        return self._rendering.page("evaluators.html", judge=judge, scored=len(scores), **view)

    async def help(self, _: Request) -> Response:
        """What each alert means and what to do: where `runbook` of the rules leads, `/help#agentfault`."""
        return await asyncio.to_thread(lambda: self._rendering.page("help.html"))

    async def health(self, _: Request) -> Response:
        found = await self._findings.now()
        vitals = self._vitals.now()  # here: the gauges belong to the event loop
        view = health_view(vitals, found, state=self._health.state, roles=self._config.roles)
        return await asyncio.to_thread(lambda: self._rendering.page("health.html", view=view))
