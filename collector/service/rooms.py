"""The service without sockets: the rooms between the receiver and the signals, as configured, over one log."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from collector.assembly.assembler import Assembler
from collector.base.clock import Clock, next_tick
from collector.base.errors import Retryable
from collector.base.plugins import PluginSwitch
from collector.base.telemetry import Telemetry
from collector.config.tree import Config, Windows
from collector.judging.budget import Budget, in_sample
from collector.judging.judge_process import JudgeProcess
from collector.judging.judging_room import JudgingRoom
from collector.judging.port import Job, JobDone, JudgeLateError, TraceJob
from collector.log.port import TRACES, Lag, Log
from collector.reading.plugin_processes import LEAST, SPARE, PluginProcesses, WorkersAndPlugins
from collector.reading.port import PluginJob, Workers, reader_settings
from collector.reading.processes import ProcessWorkers
from collector.reading.worker import InlineWorkers, JobRunner
from collector.scoring.rules import RUNAWAY, JudgedRules, Rules
from collector.scoring.scorer import Scorer
from evaluators.declare import Scope
from evaluators.model import Session
from evaluators.plan import Configured, Plan, is_third_party
from evaluators.run import SessionScorer

ASSEMBLY, SCORING, JUDGING, COMPARING = "assembly", "scoring", "judging", "comparing"
PLUGIN_JUDGING = "judging.plugins"
"""The group of each room."""


class PluginJudges:
    def __init__(self, workers: Workers, due: Sequence[Configured]) -> None:
        self._workers = workers
        self._due = due

    async def judge(self, job: Job) -> JobDone:
        scope = "trace" if isinstance(job, TraceJob) else "session"
        due = [each.spec.name for each in self._due if each.spec.scope == scope]
        async with asyncio.TaskGroup() as jobs:
            running = [
                jobs.create_task(self._workers.plugin(plugin_job(name, job))) for name in due
            ]
        return JobDone(id=job.id, outcomes=tuple(each.result() for each in running))

    def written(self, done: JobDone) -> None:
        """See the port: nothing is kept for a job."""

    async def run(self) -> None:
        await asyncio.Event().wait()


class JudgesOfPackages:
    """The judge processes of third parties as one: each gives the outcomes of its evaluators."""

    def __init__(self, processes: Iterable[JudgeProcess]) -> None:
        self._processes = tuple(processes)

    async def judge(self, job: Job) -> JobDone:
        try:
            async with asyncio.TaskGroup() as jobs:
                asked = [
                    jobs.create_task(each.judge(job))
                    for each in self._processes
                    if each.due_of(job)
                ]
        except* JudgeLateError:
            raise JudgeLateError from None
        parts = [each.result() for each in asked]
        return JobDone(
            id=job.id,
            outcomes=tuple(outcome for each in parts for outcome in each.outcomes),
            calls=sum(each.calls for each in parts),
            cost_usd=sum(each.cost_usd for each in parts),
        )

    def written(self, done: JobDone) -> None:
        for each in self._processes:
            each.written(done)  # one that had not the job has nothing to do

    async def run(self) -> None:
        async with asyncio.TaskGroup() as running:
            for each in self._processes:
                running.create_task(each.run())


def plugin_job(evaluator: str, job: Job) -> PluginJob:
    if isinstance(job, TraceJob):
        return PluginJob(
            evaluator=evaluator,
            trace=job.trace,
            history=job.history,
            turn=job.turn,
            service=job.service,
        )
    session = Session(
        service=job.service,
        session_id=job.session_id,
        agent=job.agent,
        turns=job.turns,
        closed=job.closed,
    )
    return PluginJob(evaluator=evaluator, session=session, service=job.service)


@dataclass(eq=False)
class Rooms:
    """Makes the rooms of the running service and of an offline run, the same way for both.

    Every call makes a new room: one that has stopped is not run again, another drains what it left. `log`: what the
    rooms read and write. They meet nowhere else. `clock`: the time that budgets are kept by.
    """

    config: Config
    plan: Plan
    log: Log
    workers: Workers
    telemetry: Telemetry
    clock: Clock
    switch: PluginSwitch = field(default_factory=PluginSwitch)

    @cached_property
    def _budget(self) -> Budget:
        """Of both judge processes together."""
        limits = self.config.judge.budget
        return Budget(
            usd_per_day=limits.usd_per_day,
            calls_per_minute=limits.calls_per_minute,
            service_share=self.config.fairness.share,
        )

    def assembler(self) -> Assembler:
        return Assembler(
            log=self.log,
            workers=self.workers,
            windows=self._assembled(),
            telemetry=self.telemetry,
            share=self.config.fairness.share,
            group=ASSEMBLY,
        )

    def _assembled(self) -> Windows:
        """Open traces are looked at for nothing else than whether they run away."""
        windows = self.config.windows
        if any(each.emit and each.spec.name == RUNAWAY for each in self.plan.trace):
            return windows
        trace = windows.trace.model_copy(update={"glance": None})
        return windows.model_copy(update={"trace": trace})

    def scorer(self) -> Scorer:
        plan = self.plan
        return Scorer(
            log=self.log,
            rules=Rules.of(
                plan,
                lambda: SessionScorer(plan),
                judged_rules(self.config, plan),
                task_evaluator=self.config.tasks.evaluator,
                read_only=self.config.tasks.read_only,
            ),
            windows=self.config.windows,
            telemetry=self.telemetry,
            redact=self.config.redaction.content == "drop",
            group=SCORING,
        )

    def judging(
        self,
        *,
        log_clock: Clock | None = None,
        plugins: bool = False,
    ) -> JudgingRoom:
        """The room that makes verdicts of traces; its process is started for the first of them.

        `plugins`: of third parties' evaluators, which may end or hold up their process; else of ours. `log_clock`: the
        clock of the log where that is another one: the age of a subject is a matter of log time.
        """
        judged = [each for each in self.plan.judged if is_third_party(each) == plugins]
        processes = [
            JudgeProcess(
                self.config,
                budget=self._budget,
                telemetry=self.telemetry,
                clock=self.clock,
                judged=tuple(due.values()),
                package=package,
                switch=self.switch,
            )
            for package, due in by_package(judged).items()
        ]
        return JudgingRoom(
            log=self.log,
            judges=JudgesOfPackages(processes) if plugins else processes[0],
            judged=judged,
            config=self.config.judge,
            budget=self._budget,
            telemetry=self.telemetry,
            clock=log_clock or self.clock,
            budget_clock=self.clock,
            group=PLUGIN_JUDGING if plugins else JUDGING,
            session_age=self.config.windows.session.max_age,
        )

    def comparing(self, *, log_clock: Clock | None = None) -> JudgingRoom:
        """The room that has traces and sessions scored by third parties' evaluators: verdicts that cost nothing."""
        return JudgingRoom(
            log=self.log,
            judges=PluginJudges(self.workers, self.plan.plugins),
            judged=self.plan.plugins,
            config=self.config.judge.model_copy(update={"sample": 1.0}),
            budget=Budget(usd_per_day=None, calls_per_minute=1),
            telemetry=self.telemetry,
            clock=log_clock or self.clock,
            group=COMPARING,
            session_age=self.config.windows.session.max_age,
        )


def by_package(due: Iterable[Configured]) -> dict[str, dict[str, Configured]]:
    """By third party, its evaluators by name; those of ours under an empty name."""
    packages: dict[str, dict[str, Configured]] = {}
    for each in due:
        packages.setdefault(each.spec.name.rpartition("/")[0], {})[each.spec.name] = each
    return packages


def judged_rules(config: Config, plan: Plan) -> JudgedRules:
    """Which outcomes of verdicts a session waits for, and how long."""
    judge = config.judge
    return JudgedRules(
        trace=of_scope(plan.judged, "trace"),
        session=of_scope(plan.judged, "session"),
        plugins=of_scope(plan.plugins, "trace"),
        session_plugins=of_scope(plan.plugins, "session"),
        max_lag=judge.max_lag,
        samples=lambda key: in_sample(key, judge.sample),
        probability=judge.sample,
    )


def of_scope(due: Iterable[Configured], scope: Scope) -> tuple[Configured, ...]:
    return tuple(each for each in due if each.spec.scope == scope)


def start_workers(
    config: Config,
    plan: Plan,
    telemetry: Telemetry,
    *,
    count: int,
    in_this_process: bool = False,
    switch: PluginSwitch | None = None,
    up: Callable[[], None] = lambda: None,
    down: Callable[[], None] = lambda: None,
) -> Workers:
    """Evaluator workers: `count` processes, or with 0 none, then traces are read inline. The caller closes them.

    Plug-ins have processes of their own, but with `in_this_process`. `up` is called whenever a worker becomes ready for
    jobs, `down` whenever one has ended.
    """
    workers: InlineWorkers | ProcessWorkers
    if count == 0:
        workers = InlineWorkers(JobRunner(reader_settings(config), plan))
        if in_this_process or not plan.plugins:
            return workers
    else:
        workers = ProcessWorkers(
            config=config, plan=plan, count=count, telemetry=telemetry, up=up, down=down
        )
        workers.start()
    packages = by_package(plan.plugins)
    turn = asyncio.Semaphore(LEAST)  # so that a hundred of them leave some CPU to our own workers
    each_has = max(1, max(LEAST, config.worker_count) // max(1, len(packages)))
    pools = {
        package: PluginProcesses(
            config=config,
            package=package,
            due=due,
            count=each_has + SPARE,
            least=each_has,
            turn=turn,
            switch=switch or PluginSwitch(),
            telemetry=telemetry,
        )
        for package, due in packages.items()
    }
    for each in pools.values():
        each.start()
    return WorkersAndPlugins(workers, pools)


EVERY = 1.0  # seconds between two measurements
PATIENCE = 5.0  # seconds that one may take


class ScoreLag:
    """Of one process with the roles `receive`, `assemble` and `score` over a log of its own.

    A trace waits from when it was due to close until scoring has read its record: one that takes long to be scored
    holds up no other, and is not a reason to take less. What had closed before this process began waits since then.
    While the log does not answer, what waited goes on waiting.
    """

    def __init__(self, log: Log, clock: Clock) -> None:
        self.unwritten: Callable[[], Lag] = Lag
        """What has closed and is not written: assembly's, once that is there."""
        self._log = log
        self._clock = clock
        self._began = clock()
        self._unread = Lag()

    def __call__(self) -> float:
        times = (self._unread.oldest, self.unwritten().oldest)
        oldest = min((each for each in times if each is not None), default=None)
        return 0.0 if oldest is None else max(0.0, self._clock() - max(oldest, self._began))

    async def run(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            await self.measure()
            await next_tick(EVERY, stopping)

    async def measure(self) -> None:
        with suppress(Retryable, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                self._unread = await self._log.lag(SCORING, TRACES, unread=True) or Lag()


def score_lag(config: Config, log: Log, clock: Clock) -> ScoreLag | None:
    """None: other processes score what this one receives, Kafka holds what waits, or it is switched off."""
    everything = {"receive", "assemble", "score"} <= set(config.roles)
    if not everything or config.log.kind == "kafka" or config.receiver.max_score_lag is None:
        return None
    return ScoreLag(log, clock)
