"""Pages about the service itself."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from collector.api.about import About
from collector.api.agreement_routes import Agreements
from collector.api.findings import Findings
from collector.api.page.rendering import Rendering
from collector.api.page.service_view import catalogue_view, health_view, judge_view
from collector.api.vitals import Vitals
from collector.base.lifecycle import Health
from collector.config.tree import Config


class ServicePages:
    """What is scored, and how the service is doing."""

    def __init__(
        self,
        *,
        config: Config,
        about: About,
        findings: Findings,
        vitals: Vitals,
        health: Health,
        rendering: Rendering,
        agreements: Agreements,
    ) -> None:
        self._agreements = agreements
        self._config = config
        self._about = about
        self._findings = findings
        self._vitals = vitals
        self._health = health
        self._rendering = rendering

    def routes(self) -> list[Route]:
        """The pages."""
        return [
            Route("/evaluators", self.evaluators),
            Route("/health", self.health),
            Route("/help", self.help),
        ]

    async def evaluators(self, _: Request) -> Response:
        """Every evaluator with its source, whether it runs, and what the judge costs."""
        judge = judge_view(self._config, self._vitals.now()["judge"])
        rows = self._about.catalogue()
        agreed = [each.shown() for each in self._agreements.now if each.agreement.rank is not None]
        return await asyncio.to_thread(
            lambda: self._rendering.page(
                "evaluators.html", judge=judge, **catalogue_view(rows, agreed)
            )
        )

    async def help(self, _: Request) -> Response:
        """What each alert means and what to do: where `runbook` of the rules leads, `/help#agentfault`."""
        return await asyncio.to_thread(lambda: self._rendering.page("help.html"))

    async def health(self, _: Request) -> Response:
        """Lag, sinks, storage, and what the doctor finds in the newest traces."""
        found = await self._findings.now()
        vitals = self._vitals.now()  # here: the gauges belong to the event loop
        view = health_view(vitals, found, state=self._health.state, roles=self._config.roles)
        return await asyncio.to_thread(lambda: self._rendering.page("health.html", view=view))
