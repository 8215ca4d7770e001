"""Keeps the judge process: starts it, sends it jobs, reserves budget for its calls, replaces it when it dies or hangs.

The budget lives here and not in the child, so that killing the child loses no spend: a reservation whose call was not
reported counts as spent.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace
from pydantic import SecretStr

from collector.base.child import LONGEST_RESTART, Child, restart_backoff
from collector.base.clock import Clock
from collector.base.families import RuntimeFamilies
from collector.base.plugins import OFF, PluginSwitch
from collector.base.retry import Sleep
from collector.base.supervisor import Reason, reason_of
from collector.base.telemetry import Telemetry
from collector.config.plan import part_of, plan_settings
from collector.config.tree import Config
from collector.judging.budget import Budget
from collector.judging.families import JudgingFamilies
from collector.judging.port import (
    CACHE,
    RUNNING,
    BudgetReply,
    CacheFailed,
    CallFinished,
    FromJudge,
    Job,
    JobDone,
    JudgeLateError,
    ReserveBudget,
    Setup,
    TraceJob,
    VerdictWritten,
    decode_from_judge,
    encode,
)
from evaluators.model import Failure
from evaluators.plan import Configured
from evaluators.run import failed

_log = logging.getLogger(__name__)

START_TIMEOUT = 120.0  # seconds: importing litellm takes some, on a busy machine many
MAX_ATTEMPTS = 3  # deaths of the process on one subject: one may be chance, three are the subject's
_DIED = Failure(
    type="judge_died", message=f"the judge process died {MAX_ATTEMPTS} times on this subject"
)
PERIOD = "usd_per_day"


def _plain(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


@dataclass(slots=True)
class _Pending:
    """A job and the future that its caller waits for."""

    job: Job
    future: asyncio.Future[JobDone] = field(default_factory=asyncio.Future[JobDone])
    attempts: int = 0
    awaits_budget: int = 0  # calls that wait for budget now
    without: dict[str, Failure] = field(default_factory=dict[str, Failure])
    """Third parties' evaluators that are not run."""


class _Reservation(NamedTuple):
    service: str
    usd: float
    more: bool


class JudgeProcess:
    """The `Judges` port over one child process. The room bounds the jobs: it waits for their verdicts."""

    def __init__(
        self,
        config: Config,
        *,
        budget: Budget,
        telemetry: Telemetry,
        clock: Clock,
        judged: Sequence[Configured] = (),
        package: str = "",
        switch: PluginSwitch | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`judged`: the evaluators that it runs: ours, or those of the third party `package`."""
        judge, embedder = config.judge, config.embedder
        self._due = judged
        self._plugins = {each.spec.name: each for each in judged} if package else {}
        folder = Path(config.data_dir) / (f"{CACHE}-{package}" if package else CACHE)
        self._setup = Setup(
            config=config.model_dump_json(),
            api_key=_plain(judge.api_key),
            embedder_api_key=_plain(embedder.api_key),
            plan=part_of(plan_settings(config), package),
            folder=str(folder),
            judged=tuple(each.spec.name for each in judged),
            limits={},
        )
        self._running = folder / RUNNING
        self._switch = switch or PluginSwitch()
        self._model = judge.model or ""
        self._timeout = judge.max_lag
        self.budget = budget
        self._families = JudgingFamilies(telemetry)
        self._families.show_budget(PERIOD, lambda: budget.remaining(clock()), lambda: budget.limit)
        self._room_failures = RuntimeFamilies(telemetry).room_failures
        self._said: set[Reason] = set()
        self._clock = clock
        self._sleep = sleep
        self._pending: dict[int, _Pending] = {}
        self._reserved: dict[int, _Reservation] = {}
        self._child: Child | None = None
        self._has_jobs = asyncio.Event()
        self.pid: int | None = None  # of the running child

    async def judge(self, job: Job) -> JobDone:
        pending = self._pending[job.id] = _Pending(job)
        self._has_jobs.set()
        self._send(pending)
        try:
            async with asyncio.timeout(self._timeout):
                return await pending.future
        except TimeoutError as error:
            # A job that waits for budget does not hang: its calls are refused once it is gone.
            if self._child is not None and not pending.awaits_budget:
                self._child.kill()
                self._child = None  # no evaluator has ended it
            raise JudgeLateError from error
        finally:
            self._pending.pop(job.id, None)

    def written(self, done: JobDone) -> None:
        if self._child is not None and not self._child.has_ended:
            self._child.send(encode(VerdictWritten(id=done.id)))

    async def run(self) -> None:
        """Keep a judge process until cancelled; the first is started for the first job."""
        restarts = restart_backoff(self._sleep)
        await self._has_jobs.wait()
        while True:
            reason = "died"
            began = self._clock()
            limits = {
                name: self._switch.limit(name, each.timeout) for name, each in self._plugins.items()
            }
            self._setup = replace(self._setup, limits=limits)
            with contextlib.suppress(OSError):
                self._running.unlink()
            child = Child(
                "collector.judging.child",
                encode(self._setup),
                START_TIMEOUT,
                is_theirs=bool(self._plugins),
            )
            try:
                async with child:
                    await self._serve(child)
            except TimeoutError:
                reason = "hung"
            except (EOFError, ConnectionError):
                if self._plugins and self._blame():
                    restarts.reset()  # it is switched off before long
            except OSError as error:
                reason = "unstartable"
                self._note_failure(reason_of(error), error)
            finally:
                self._child_ended()
            self._families.restarts.labels(reason).inc()
            if reason != "unstartable" and not child.was_interrupted:
                _log.warning("The judge process %s, another is started", reason)
            if self._clock() - began > LONGEST_RESTART:
                restarts.reset()
            await restarts.sleep()

    def _note_failure(self, reason: Reason, error: object) -> None:
        """Count a failure that costs no verdict; named once until a judge process runs, or its cache works, again."""
        self._room_failures.labels("judge", reason).inc()
        if reason not in self._said:
            self._said.add(reason)
            _log.error("The judge is hindered (%s) and goes on: %s", reason, error)

    async def _serve(self, child: Child) -> None:
        self._child, self.pid = child, child.pid
        self._said.clear()
        for pending in [*self._pending.values()]:
            self._send(pending)
        try:
            async with asyncio.TaskGroup() as waiting:
                while True:
                    self._take(self._frame(await child.receive()), child, waiting)
        except* (EOFError, OSError) as ends:
            raise EOFError from ends

    def _frame(self, payload: bytes) -> FromJudge:
        """Raises EOFError: others' code has written the payload to the socket."""
        try:
            frame = decode_from_judge(payload)
        except (msgspec.DecodeError, ValueError) as error:
            raise EOFError from error
        if isinstance(frame, JobDone) and not self._plugins.keys() >= {*frame.late}:
            raise EOFError
        return frame

    def _blame(self) -> bool:
        """Leave the evaluator that ran when the process ended out on that subject; the other subjects lose nothing.

        Returns whether it is known.
        """
        try:
            job, began, name = self._running.read_text().rstrip("\0").split(" ", 2)
            pending, evaluator = self._pending[int(job)], self._plugins[name]
        except (
            OSError,
            ValueError,
            LookupError,
        ):  # none ran; a thread that one left behind, for instance
            if self._child is not None:
                self._switch.blame(*self._plugins, subject="subject")
            return False
        limit = self._setup.limits[name]
        late = limit if time.monotonic() - float(began) >= limit else None
        subject = f"{evaluator.spec.scope} of `{pending.job.service}`"
        pending.without[name] = self._switch.blame(name, subject=subject, late=late)
        for each in self._pending.values():
            each.attempts = 0
        return True

    def due_of(self, job: Job) -> Sequence[Configured]:
        scope = "trace" if isinstance(job, TraceJob) else "session"
        return [each for each in self._due if each.spec.scope == scope]

    def _send(self, pending: _Pending) -> None:
        due = self.due_of(pending.job)
        for name in self._switch.off.intersection(each.spec.name for each in due):
            pending.without.setdefault(name, OFF)
        if pending.without and len(pending.without) == len(due):
            self._done(pending, JobDone(id=pending.job.id))
        elif self._child is not None and not self._child.has_ended:
            pending.attempts += 1
            self._child.send(encode(replace(pending.job, without=tuple(pending.without))))

    def _done(self, pending: _Pending, done: JobDone) -> None:
        """Answer with an outcome of every evaluator, those that were not run or took too long among them."""
        if pending.future.done():
            return
        for name in done.late:
            subject, late = f"subject of `{pending.job.service}`", self._setup.limits[name]
            pending.without[name] = self._switch.blame(name, subject=subject, late=late)
        outcomes = [each for each in done.outcomes if each.evaluator not in pending.without]
        outcomes += [failed(self._plugins[name], why) for name, why in pending.without.items()]
        pending.future.set_result(replace(done, outcomes=tuple(outcomes)))

    def _child_ended(self) -> None:
        """Count the reservations of calls under way as spent; the next process gets their jobs again."""
        self._child, self.pid = None, None
        for service, usd, more in self._reserved.values():
            self.budget.settle(self._clock(), service, reserved=usd, usd=usd, more=more)
        self._reserved.clear()
        for pending in self._pending.values():
            if pending.attempts >= MAX_ATTEMPTS and not pending.future.done():
                outcomes = tuple(failed(each, _DIED) for each in self.due_of(pending.job))
                self._done(pending, JobDone(id=pending.job.id, outcomes=outcomes))

    def _take(self, frame: msgspec.Struct, child: Child, waiting: asyncio.TaskGroup) -> None:
        if isinstance(frame, ReserveBudget):
            waiting.create_task(self._reserve(frame, child))
        elif isinstance(frame, CallFinished):
            self._finish(frame)
        elif isinstance(frame, CacheFailed):
            self._note_failure(frame.reason, frame.message)
        elif isinstance(frame, JobDone):
            pending = self._pending.get(frame.id)
            if pending is not None:
                self._done(pending, frame)

    async def _reserve(self, request: ReserveBudget, child: Child) -> None:
        """Answer when the call may be made, or must not be: the budget is spent, or the job is gone."""
        granted = False
        pending = self._pending.get(request.job)
        if pending is not None:
            await self._turn_of(pending)
            granted = request.job in self._pending and self._grant(request, pending.job)
        child.send(encode(BudgetReply(id=request.id, granted=granted)))

    async def _turn_of(self, pending: _Pending) -> None:
        """Wait until the budget allows the job another call. Whose subject is under way wants calls, too."""
        pending.awaits_budget += 1
        try:
            while (wait := self._wait(pending.job)) > 0:  # noqa: ASYNC110 - time is what it waits for
                await asyncio.sleep(wait)
        finally:
            pending.awaits_budget -= 1

    def _wait(self, job: Job) -> float:
        under_way = {each.job.service for each in self._pending.values()}
        return self.budget.wait(self._clock(), job.service, under_way, more=job.more)

    def _grant(self, request: ReserveBudget, job: Job) -> bool:
        if not self.budget.reserve(self._clock(), request.usd, job.service, more=job.more):
            self._families.requests.labels(self._model, "budget_denied").inc()
            return False
        self._reserved[request.id] = _Reservation(job.service, request.usd, job.more)
        return True

    def _finish(self, call: CallFinished) -> None:
        service, reserved, more = self._reserved.pop(call.id, _Reservation("", 0.0, more=False))
        usd = reserved if call.keep_reservation else call.usd or 0.0
        self.budget.settle(self._clock(), service, reserved=reserved, usd=usd, more=more)
        families, model = self._families, call.model
        families.requests.labels(model, call.result).inc()
        families.request_duration.labels(model).observe(call.seconds)
        families.tokens.labels(model, "input").inc(call.input_tokens)
        families.tokens.labels(model, "output").inc(call.output_tokens)
        families.cost.labels(model).inc(call.usd or 0.0)
