"""The API of role `publish`: an index of what was scored, `/api/v1` and the page over it."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from starlette.applications import Starlette

from collector.api.about import About
from collector.api.admin import build_app
from collector.api.agreement_routes import Agreements
from collector.api.answers import RequestRefused
from collector.api.compare import Compare, Versions
from collector.api.families import ApiFamilies
from collector.api.feed import Feed, FeedbackCounts, Joined
from collector.api.findings import Findings
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.outgoing import Outgoing
from collector.api.page.agent_pages import AgentPages
from collector.api.page.agreement_pages import AgreementPages
from collector.api.page.feedback_pages import FeedbackPages
from collector.api.page.rendering import Rendering
from collector.api.page.service_pages import ServicePages
from collector.api.page.session_pages import SessionPages
from collector.api.page.site import Site
from collector.api.page.trace_pages import TracePages
from collector.api.page.two_sides_pages import TwoSidesPages
from collector.api.query import Query
from collector.api.routes import Routes
from collector.api.stream import Stream
from collector.api.traces import Traces
from collector.api.viewer_zone import ViewerZone
from collector.api.vitals import Vitals
from collector.api.what_changed import between, differing_by_agent
from collector.base import watch
from collector.base.clock import Clock
from collector.base.lifecycle import Health
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.log.port import Log
from collector.otlp.redaction import RedactionSettings, redactor
from collector.records.external import EvaluationRules
from collector.records.standing import Standings

PAGES = (
    AgentPages,
    TwoSidesPages,
    SessionPages,
    TracePages,
    FeedbackPages,
    AgreementPages,
    ServicePages,
)


class Api:
    """Owns the index; made once per process.

    Args:
        log: Where topics `traces` and `signals` are read.
        folder: Of the index; it may be deleted while Spanwise is stopped.
        config: The whole tree; `serve`, `redaction`, `admin` and `receiver` are read.
        evaluators: What `/api/v1/evaluators` lists.
        standings: The states of agents, from the state behind the gauges; called on the event loop.
        versions: The sessions of each version of an agent; called on the event loop.
        joined: Called with feedback that was joined with a session; called on the event loop.
        health: What `/readyz` says.
        clock: Unix seconds.
        ports: Where this process takes spans over gRPC and over HTTP, once they are bound.
        about: What the layers above know of the service.

    Raises:
        ConfigError: The folder cannot be used.
    """

    def __init__(  # noqa: PLR0913 - its collaborators, one by one
        self,
        *,
        log: Log,
        folder: Path,
        config: Config,
        telemetry: Telemetry,
        evaluators: Callable[[], Sequence[Mapping[str, Any]]],
        standings: Callable[[], Standings],
        versions: Versions = lambda _agent, _evaluator: {},
        joined: Joined = lambda _service, _session_id, _name: None,
        health: Health,
        clock: Clock,
        ports: Callable[[], tuple[int, int] | None] = lambda: None,
        about: About | None = None,
    ) -> None:
        content = config.redaction.content == "keep"
        families = ApiFamilies(telemetry)
        names = [each["name"] for each in evaluators()]
        self._index = Index(
            folder,
            size=config.serve.index,
            max_traces=config.windows.session.max_traces,
            content=content,
            families=families,
        )
        self._stream = Stream(families, self._index, OffLoop(families))
        self._new_feed = partial(
            Feed,
            log=log,
            index=self._index,
            stream=self._stream,
            telemetry=telemetry,
            clock=clock,
            feedback=FeedbackCounts(telemetry, families, joined),
            max_age=config.feedback.max_age,
            scores=EvaluationRules.of(config, frozenset(names)),
        )
        self._has_failed = False
        query = self._query = Query(self._index)
        off_loop = OffLoop(families)
        # Places of their own: lists do not wait behind whole traces.
        traces = Traces(
            log=log,
            query=query,
            off_loop=OffLoop(families),
            content=content,
            redactor=redactor(RedactionSettings.of(config)),
        )
        about = about or About()
        catalogue = about.catalogue  # has thresholds too
        compare = Compare(
            versions=versions,
            standings=standings,
            evaluators=lambda: catalogue() or evaluators(),
            changed=partial(between, self._index),
            off_loop=off_loop,
        )
        self._agreements = Agreements(
            index=self._index,
            catalogue=catalogue,
            off_loop=off_loop,
            telemetry=telemetry,
            families=families,
        )
        site = Site(
            config=config,
            log=log,
            index=self._index,
            query=query,
            traces=traces,
            off_loop=off_loop,
            findings=Findings(
                about=about, query=query, traces=traces, off_loop=off_loop, clock=clock
            ),
            agreements=self._agreements,
            about=about,
            vitals=Vitals(telemetry.registry, clock=clock),
            health=health,
            rendering=Rendering(config),
            standings=standings,
            verdict=compare.compared,
            counted=compare.counted,
            clock=clock,
            ports=ports,
        )
        settle = config.windows.agent.settle
        differing = partial(differing_by_agent, self._index, settle=settle, clock=clock)
        api = Routes(site, differing, self._stream, evaluators)
        pages = (kind(site) for kind in PAGES)
        routes = (each.routes() for each in (api, compare, self._agreements, *pages))
        self.app: Starlette = build_app(
            config=config,
            exposition=telemetry.exposition,
            health=health,
            routes=[*chain.from_iterable(routes)],
            error_page=site.rendering.error,
        )
        self.app.add_middleware(Outgoing, families=families)
        self.app.add_middleware(ViewerZone, clock=clock)

    async def run(self, stopping: asyncio.Event) -> None:
        """Fill the index until `stopping` is set; live streams end then too, so that the listener can close.

        It may be run again after a failure, and then opens the index again: the failure may have ended it for good.
        Raises Retryable: the index cannot be opened again now.
        """
        if self._has_failed:
            self._index.reopen()
        self._has_failed = True
        async with asyncio.TaskGroup() as tasks:
            feed = tasks.create_task(self._new_feed().run(stopping), name="feed")
            agreeing = tasks.create_task(self._agreements.run(stopping), name="agreement")
            await watch.until(stopping, [feed, agreeing])
            self._stream.close()

    def said(self, service: str, session_id: str, names: Collection[str]) -> bool | None:
        """Whether feedback of these names says that a session went well; None: no one does, or it is not known now."""
        try:
            return self._query.said_of_session(service, session_id, names)
        except RequestRefused:
            return None

    def close(self) -> None:
        self._index.close()
