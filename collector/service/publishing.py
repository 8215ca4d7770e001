"""What role `publish` runs over the log: the metrics about agents, ranks, notices, and one delivery per sink."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial

from collector.base import watch
from collector.base.lifecycle import Run
from collector.base.steady_clock import SteadyClock
from collector.base.supervisor import Supervisor
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.export.exporter import PrometheusExporter
from collector.forward.broadcasts import AlarmBroadcaster
from collector.log.port import TRACES, Log
from collector.notices.notices_room import NoticesRoom
from collector.records.comparison import VersionWindow
from collector.records.external import external_objectives
from collector.records.second_opinion import asked_for_opinions
from collector.records.standing import AgentLabels, Standings
from collector.service.sinks import sinks
from collector.sinks.delivery import Delivery
from collector.sinks.feedback_delivery import FeedbackDelivery, TakesFeedback
from collector.watch.ranking.ranking_room import RankingRoom
from collector.watch.second_opinions import SecondOpinions
from collector.watch.task_runs import TaskRuns
from evaluators.formulas.past_limits import PastLimits
from evaluators.plan import Plan

SaidOfSession = Callable[[str, str, Collection[str]], bool | None]
"""(service, session id, names of feedback) in; whether people liked it, None where no one says so."""


@dataclass(eq=False)
class Publishing:
    """Makes the rooms, a new one after each failure."""

    config: Config
    plan: Plan
    evaluators: AbstractSet[str]
    drops: PastLimits  # how scores are compared with their own past
    telemetry: Telemetry
    clock: SteadyClock
    supervisor: Supervisor
    drains: bool  # whether a stop delivers everything
    said: SaidOfSession = field(
        default_factory=lambda: lambda _service, _session, _names: None, init=False
    )
    """What people say of a session: set by whoever knows."""
    _exporter: PrometheusExporter | None = field(default=None, init=False)
    _runs: TaskRuns | None = field(default=None, init=False)

    def rooms(self, log: Log) -> Iterator[tuple[str, Run]]:
        """Each with its stage: ranks come to their end before what publishes them."""
        kept = self.supervisor.keep
        yield "publish", kept("metrics", lambda: self._exporting(log).run)
        yield "rank", kept("ranking", lambda: self.ranking(log).run)
        keep = self.config.forward and self.config.forward.keep
        if keep and keep.alarms:
            yield "publish", kept("forward", lambda: self._alarms(log).run)
        if self.config.notify.to:
            yield "publish", kept("notify", lambda: self._notices(log).run)
        for name in [each.name for each in sinks(self.config)]:
            yield "publish", kept(f"sink.{name}", partial(self._delivery, log, name))

    def standings(self) -> Standings:
        """The state of each agent; empty where nothing is known yet."""
        return {} if self._exporter is None else self._exporter.standings()

    def versions(self, agent: AgentLabels, evaluator: str) -> Mapping[str, VersionWindow]:
        """The sessions of each version of an agent; empty where nothing is known yet."""
        return {} if self._exporter is None else self._exporter.versions(agent, evaluator)

    def said_something(self, service: str, session_id: str, name: str) -> None:
        """Feedback of this name was joined with a session; called on the event loop."""
        if self._runs is not None and name in self.config.tasks.feedback:
            self._runs.decide(service, session_id)

    def ranking(self, log: Log) -> RankingRoom:
        return RankingRoom(
            log=log,
            ranked=self.plan.ranked,
            telemetry=self.telemetry,
            redact=self.config.redaction.content == "drop",
        )

    def _exporting(self, log: Log) -> PrometheusExporter:
        names = self.config.tasks.feedback
        self._runs = TaskRuns(
            window=self.config.tasks.window,
            said=(lambda service, session: self.said(service, session, names)) if names else None,
        )
        self._exporter = PrometheusExporter(
            log=log,
            telemetry=self.telemetry,
            windows=self.config.windows.agent,
            objectives=lru_cache(256)(self._objective),
            runs=self._runs,
            drops=self.drops,
            trace_age=self.config.windows.trace.max_age,
            clock=self.clock,
            opinions=self._opinions(log),
        )
        return self._exporter

    def _opinions(self, log: Log) -> SecondOpinions:
        judge = self.config.judge
        return SecondOpinions(
            judge.more if judge.sample < 1 else None,
            asked_for_opinions(self.plan),
            model=judge.model or "",
            settle=self.config.windows.agent.settle,
            partitions=max(1, log.partitions(TRACES)),
        )

    def _alarms(self, log: Log) -> AlarmBroadcaster:
        return AlarmBroadcaster(log=log, standings=self.standings, caught_up=self._has_caught_up)

    def _has_caught_up(self) -> bool:
        return self._exporter is not None and self._exporter.caught_up

    def _notices(self, log: Log) -> NoticesRoom:
        return NoticesRoom(
            self.config.notify,
            log=log,
            telemetry=self.telemetry,
            standings=self.standings,
            caught_up=self._has_caught_up,
            clock=self.clock,
            wall=self.clock.wall,
        )

    def _delivery(self, log: Log, name: str) -> Run:
        (sink,) = (each for each in sinks(self.config) if each.name == name)
        signals = Delivery(log=log, sink=sink, telemetry=self.telemetry, drains=self.drains)
        if not isinstance(sink, TakesFeedback):
            return signals.run
        feedback = FeedbackDelivery(log=log, sink=sink, telemetry=self.telemetry)

        async def both(stopping: asyncio.Event) -> None:
            runs = (each.run(stopping) for each in (feedback, signals))
            await watch.together("delivering", stopping, *runs)

        return both

    @cached_property
    def _external(self) -> Mapping[str, float]:
        return external_objectives(self.config, self.evaluators)

    def _objective(self, evaluator: str) -> float | None:
        """The evaluator's own, else the common one; None = it has none, as those without pass and fail that rank."""
        chosen = self.config.evaluators.get(evaluator)
        if chosen is not None and chosen.objective is not None:
            return chosen.objective
        if (own := self._external.get(evaluator)) is not None:
            return own
        if any(evaluator == each.spec.name and each.threshold is None for each in self.plan.ranked):
            return None
        return self.config.slo.objective
