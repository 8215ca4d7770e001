"""One process: the rooms of its roles, wired. The only module that knows them all.

    receiver --spans--> assembly --traces--> scoring --signals--> sinks, prometheus, api
       spans --> forward

Started from the end of the walk and stopped from its beginning, so that each room hands over what it holds.
"""

import asyncio
import gc
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from collector.api.about import About
from collector.api.admin import AdminServer, build_app
from collector.api.api import Api
from collector.base.families import RuntimeFamilies
from collector.base.heap import trimmed_heap
from collector.base.lifecycle import Health, Stages
from collector.base.plugins import PluginSwitch
from collector.base.steady_clock import ClockWatch, SteadyClock
from collector.base.supervisor import Supervisor
from collector.base.telemetry import Telemetry
from collector.base.time_slice import take_turns
from collector.base.version import version
from collector.config.plan import plan_from, registry_from
from collector.config.tree import Config
from collector.export.metric_push import MetricPush
from collector.log.disk.disk_log import DiskLog
from collector.log.port import Lag, Log
from collector.otlp.redaction import RedactionSettings, redactor
from collector.reading.port import Workers
from collector.receiver.feedback.found import FeedbackReader
from collector.receiver.log_requests import LogRequests
from collector.receiver.receiver import Receiver
from collector.receiver.splitter import Splitter
from collector.records.feedback import FeedbackRules
from collector.records.otlp_signals import LOGS as OTLP_LOGS
from collector.service.families import declare_families
from collector.service.forwarding import start_forwarding
from collector.service.logs import joined_record, lag_meter, open_log
from collector.service.publishing import Publishing
from collector.service.rooms import Rooms, ScoreLag, score_lag, start_workers
from evaluators.declare import Spec
from evaluators.formulas.past_limits import PastLimits
from evaluators.plan import Plan, is_third_party
from evaluators.registry import listing

_log = logging.getLogger(__name__)

RECEIVER_GRACE = 5.0  # seconds that a stop leaves to open requests
GC_THRESHOLDS = 20_000, 20, 50
"""Records are trees: at Python's 700 new objects a collection walks each of them several times over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where a started process can be reached; None for what its roles do not serve."""

    grpc: str | None
    http: str | None
    admin: str


TellAbout = Callable[[Config, Sequence[Spec], Plan, Callable[[], frozenset[str]]], About]


class App:
    """A process with the roles of its configuration.

    Raises ConfigError: anything that only the user can put right, before a single span was taken.
    """

    def __init__(
        self,
        config: Config,
        *,
        drops: PastLimits | None = None,
        about: TellAbout | None = None,
    ) -> None:
        """`drops`: how scores are compared with their own past, where that differs from the default.

        `about`: what the pages say of the evaluators and of what the spans lack; None: nothing.
        """
        self._about = about
        self._config = config
        self._clock = SteadyClock()
        self._registry = registry_from(config, strict=False)
        self._plan = plan_from(config, registry=self._registry)
        self._telemetry = Telemetry()
        declare_families(self._telemetry)
        self._telemetry.build.info({"version": version()})
        self._families = RuntimeFamilies(self._telemetry)
        self._switch = PluginSwitch()
        theirs = (each.spec.name for each in self._plan if is_third_party(each))
        self._families.show_off(theirs, lambda: self._switch.off)
        self._health = Health(self._families.event_loop_lag)
        self._supervisor = Supervisor(self._telemetry)
        self._ports: tuple[int, int] | None = None  # of the receiver, once they are bound
        self._publishing = Publishing(
            config,
            self._plan,
            evaluators={each.name for each in self._registry},
            drops=drops or PastLimits(),
            telemetry=self._telemetry,
            clock=self._clock,
            supervisor=self._supervisor,
            drains=_drains(config),
        )

    async def run(
        self,
        stopping: asyncio.Event,
        ready: Callable[[Endpoints], None],
        *,
        at_once: asyncio.Event,
    ) -> None:
        """Serve until `stopping` is set; `ready` is called once everything is bound.

        `at_once` cuts `receiver.stop_delay` short.
        """
        async with AsyncExitStack() as owned:
            owned.enter_context(trimmed_heap())
            log = await open_log(self._config, self._clock, self._telemetry)
            owned.push_async_callback(log.close)
            api = self._api(log)
            if api is not None:
                owned.callback(api.close)
                self._publishing.said = api.said
            admin = self._admin(api)
            workers = self._workers(log)
            owned.push_async_callback(workers.close)
            rooms = Rooms(
                self._config,
                self._plan,
                log=log,
                workers=workers,
                telemetry=self._telemetry,
                clock=self._clock,
                switch=self._switch,
            )
            behind = score_lag(self._config, log, self._clock)
            receiver = self._receiver(log, behind)
            async with Stages() as stages:
                stages.start("health", self._health.run)
                stages.start("health", ClockWatch(self._clock, self._families).run)
                stages.start("admin", admin.run)
                if api is not None:
                    stages.start("publish", self._supervisor.keep("api", lambda: api.run))
                    for stage, run in self._publishing.rooms(log):
                        stages.start(stage, run)
                self._start_pushing(stages)
                self._start_rooms(stages, rooms, log, behind)
                if self._config.forward is not None and "receive" in self._config.roles:
                    await start_forwarding(
                        self._config,
                        self._config.forward,
                        stages,
                        self._supervisor,
                        log=log,
                        telemetry=self._telemetry,
                        clock=self._clock,
                        drains=_drains(self._config),
                    )
                if receiver is not None:
                    await receiver.start()
                    self._ports = (receiver.grpc_port, receiver.http_port)
                stages.watch(log, workers, receiver)
                _settle_memory()
                take_turns()
                self._health.started = True
                ready(self._endpoints(admin, receiver))
                await stages.until(stopping)
                _log.info("The service is stopping.")
                self._health.stopping = True
                await stages.stop("watch")
                if receiver is not None:
                    await receiver.leave(at_once)
                log.begin_shutdown()
                if receiver is not None:
                    await receiver.stop(RECEIVER_GRACE)
                await self._stop(stages, rooms, workers, log)

    def _start_pushing(self, stages: Stages) -> None:
        target = self._config.metrics.otlp
        if target is not None:
            push = MetricPush(
                target,
                telemetry=self._telemetry,
                clock=self._clock,
                instance=f"{socket.gethostname()}:{self._config.admin.port}",
            )
            stages.start("push", self._supervisor.keep("metrics.otlp", lambda: push.run))

    def _start_rooms(self, stages: Stages, rooms: Rooms, log: Log, behind: ScoreLag | None) -> None:
        roles = self._config.roles
        if "score" in roles:
            stages.start("score", rooms.scorer().run)
        if "score" in roles and self._plan.plugins:
            compare = self._supervisor.keep("compare", lambda: rooms.comparing().run)
            stages.start("compare", compare)
        for of in {is_third_party(each) for each in self._plan.judged} if "judge" in roles else ():
            judge = self._supervisor.keep("judge", lambda of=of: rooms.judging(plugins=of).run)
            stages.start("judge", judge)
        unwritten: Callable[[], Lag] = Lag
        if "assemble" in roles:
            assembler = rooms.assembler()
            unwritten = assembler.unwritten
            stages.start("assemble", assembler.run)
        meter = lag_meter(
            log, self._config, unwritten=unwritten, telemetry=self._telemetry, clock=self._clock
        )
        stages.start("lag", self._supervisor.keep("lag", lambda: meter.run))
        if behind is not None:
            behind.unwritten = unwritten
            stages.start("lag", self._supervisor.keep("score_lag", lambda: behind.run))
        if "receive" in roles and self._config.log.kind == "kafka":
            requests = LogRequests(
                log=log, signal=OTLP_LOGS, splitter=self._splitter(), telemetry=self._telemetry
            )
            stages.start("logs", requests.run)

    async def _stop(self, stages: Stages, rooms: Rooms, workers: Workers, log: Log) -> None:
        """From the beginning of the walk; a durable log keeps what is open, a memory log must hand it over."""
        config = self._config
        hands_over = _drains(config)
        if not hands_over:
            workers.hasten()
        await stages.stop("logs")
        await stages.stop("assemble", "forward", "lag")
        if hands_over and "assemble" in config.roles:
            await rooms.assembler().drain("shutdown")
        await stages.stop("score", "compare", "judge")
        if hands_over and "score" in config.roles:
            await rooms.scorer().drain("shutdown")
        await stages.stop("rank")
        if hands_over and "publish" in config.roles:
            await self._publishing.ranking(log).drain()
        await stages.stop("publish")
        await stages.stop("push")
        await stages.stop("admin", "health")

    def _receiver(self, log: Log, behind: ScoreLag | None) -> Receiver | None:
        if "receive" not in self._config.roles:
            return None
        return Receiver(
            log=log,
            config=self._config.receiver,
            splitter=self._splitter(joined=joined_record(self._config, log)),
            telemetry=self._telemetry,
            clock=self._clock,
            share=self._config.fairness.share,
            behind=behind,
        )

    def _splitter(self, *, joined: int = 0) -> Splitter:
        return Splitter(
            max_item=self._config.windows.trace.max_bytes,
            joined=joined,
            redact=redactor(RedactionSettings.of(self._config)),
            keeps_unread=self._config.forward is not None,
            feedback=FeedbackReader(FeedbackRules.of(self._config), self._clock),
        )

    def _workers(self, log: Log) -> Workers:
        roles = self._config.roles
        count = self._config.worker_count if "assemble" in roles else 0
        self._health.has_worker = count == 0

        def up() -> None:
            self._health.has_worker = True

        def down() -> None:
            if isinstance(log, DiskLog):
                log.clear_readers()

        return start_workers(
            self._config,
            self._plan,
            self._telemetry,
            count=count,
            switch=self._switch,
            up=up,
            down=down,
        )

    def _api(self, log: Log) -> Api | None:
        if "publish" not in self._config.roles:
            return None
        return Api(
            log=log,
            folder=self._config.data_dir / "index",
            config=self._config,
            telemetry=self._telemetry,
            evaluators=self._evaluators,
            standings=self._publishing.standings,
            versions=self._publishing.versions,
            joined=self._publishing.said_something,
            health=self._health,
            clock=self._clock,
            ports=lambda: self._ports,
            about=self._about
            and self._about(
                self._config, tuple(self._registry), self._plan, lambda: self._switch.off
            ),
        )

    def _admin(self, api: Api | None) -> AdminServer:
        app = (
            build_app(
                config=self._config, exposition=self._telemetry.exposition, health=self._health
            )
            if api is None
            else api.app
        )
        server = AdminServer(app, self._config.admin, self._families)
        server.bind()
        return server

    def _evaluators(self) -> Sequence[Mapping[str, Any]]:
        off = self._switch.off
        return [{**each, "switched_off": each["name"] in off} for each in listing(self._registry)]

    def _endpoints(self, admin: AdminServer, receiver: Receiver | None) -> Endpoints:
        config = self._config
        return Endpoints(
            grpc=receiver and f"{config.receiver.grpc.host}:{receiver.grpc_port}",
            http=receiver and f"{config.receiver.http.host}:{receiver.http_port}",
            admin=f"{config.admin.host}:{admin.port}",
        )


def _drains(config: Config) -> bool:
    """Whether a stop scores and delivers what is open, because the process or its log will not come back."""
    return config.drain_on_stop or config.log.kind == "memory"


def _settle_memory() -> None:
    """Collect garbage more rarely, and never look again at the objects that live as long as the process."""
    gc.set_threshold(*GC_THRESHOLDS)
    gc.freeze()
