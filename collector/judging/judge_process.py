"""Keeps the judge process: starts it, sends it jobs, reserves budget for its calls, replaces it when it dies or hangs.

The budget lives here and not in the child, so that killing the child loses no spend: a reservation whose call was not
reported counts as spent.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from pydantic import SecretStr

from collector.base.child import LONGEST_RESTART, Child, restart_backoff
from collector.base.clock import Clock
from collector.base.families import RuntimeFamilies
from collector.base.plugin_switch import WHY_OFF, WINDOW, PluginSwitch
from collector.base.retry import Sleep
from collector.base.supervisor import Reason, reason_of
from collector.base.telemetry import Telemetry
from collector.config.plan import plan_settings, without_plugins
from collector.config.tree import Config
from collector.judging.budget import Budget
from collector.judging.families import JudgingFamilies
from collector.judging.port import (
    BudgetReply,
    CacheFailed,
    CallFinished,
    Job,
    JobDone,
    JudgeDiedError,
    JudgeLateError,
    ReserveBudget,
    Setup,
    SwitchedOffError,
    VerdictWritten,
    decode_from_judge,
    encode,
)
from evaluators.plan import Configured, is_third_party

_log = logging.getLogger(__name__)

START_TIMEOUT = 120.0  # seconds: importing litellm takes some, on a busy machine many
MAX_ATTEMPTS = 3  # deaths of the process on one subject: one may be chance, three are the subject's
PERIOD = "usd_per_day"
_ALL = ""
"""They share their process, so they are switched off together."""


def _plain(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


class _Pending:
    """A job and the future that its caller waits for."""

    __slots__ = ("attempts", "awaits_budget", "future", "job")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.attempts = 0
        self.awaits_budget = 0  # calls that wait for budget now
        self.future: asyncio.Future[JobDone] = asyncio.get_running_loop().create_future()


class _Reservation(NamedTuple):
    service: str
    usd: float


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
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`judged`: the evaluators that it runs: ours, or those of third parties."""
        judge, embedder = config.judge, config.embedder
        theirs = frozenset(each.spec.name for each in judged if is_third_party(each))
        self._setup = encode(
            Setup(
                config=config.model_dump_json(),
                api_key=_plain(judge.api_key),
                embedder_api_key=_plain(embedder.api_key),
                plan=plan_settings(config) if theirs else without_plugins(plan_settings(config)),
                judged=tuple(each.spec.name for each in judged),
                plugins=bool(theirs),
            )
        )
        self._plugins = theirs
        self._switch = PluginSwitch()
        self._model = judge.model or ""
        self._timeout = judge.max_lag
        self.budget = budget
        self._families = JudgingFamilies(telemetry)
        self._families.show_budget(PERIOD, lambda: budget.remaining(clock()), lambda: budget.limit)
        families = RuntimeFamilies(telemetry)
        families.show_off(self._plugins, lambda: self.off)
        self._room_failures = families.room_failures
        self._said: set[Reason] = set()
        self._clock = clock
        self._sleep = sleep
        self._numbers = itertools.count()
        self._pending: dict[int, _Pending] = {}
        self._reserved: dict[int, _Reservation] = {}
        self._child: Child | None = None
        self._has_jobs = asyncio.Event()
        self.pid: int | None = None  # of the running child

    @property
    def off(self) -> frozenset[str]:
        is_off = self._switch.is_off(_ALL, time.monotonic())
        return self._plugins if is_off else frozenset()

    async def judge(self, make: Callable[[int], Job]) -> JobDone:
        if self.off:
            raise SwitchedOffError(WHY_OFF)
        job = make(next(self._numbers))
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
            child = Child("collector.judging.child", self._setup, START_TIMEOUT)
            try:
                async with child:
                    await self._serve(child)
            except TimeoutError:
                reason = "hung"
            except (EOFError, ConnectionError):
                pass
            except OSError as error:
                reason = "unstartable"
                self._note_failure(reason_of(error), error)
            finally:
                self._child_ended()
            self._families.restarts.labels(reason).inc()
            if reason != "unstartable" and not child.was_interrupted:
                _log.warning("The judge process %s, another is started", reason)
            if self._plugins and reason != "unstartable":
                self._strike()
            if self._clock() - began > LONGEST_RESTART:
                restarts.reset()
            await restarts.sleep()

    def _strike(self) -> None:
        """One of the evaluators ended or held up the process: which one is not known."""
        if self._switch.strike(_ALL, time.monotonic()):
            names = ", ".join(f"`{name}`" for name in sorted(self._plugins))
            _log.error("%s switched off for %g min: %s", names, WINDOW / 60, WHY_OFF)

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
                    self._take(decode_from_judge(await child.receive()), child, waiting)
        except* (EOFError, OSError) as ends:
            raise EOFError from ends

    def _send(self, pending: _Pending) -> None:
        if self._child is None or self._child.has_ended:
            return
        pending.attempts += 1
        self._child.send(encode(pending.job))

    def _child_ended(self) -> None:
        """Count the reservations of calls under way as spent; the next process gets their jobs again."""
        self._child, self.pid = None, None
        for service, usd in self._reserved.values():
            self.budget.settle(self._clock(), service, reserved=usd, usd=usd)
        self._reserved.clear()
        for pending in self._pending.values():
            # Third parties' are not tried again: whoever did it would do it to the same subjects once more.
            most = 1 if self._plugins else MAX_ATTEMPTS
            if pending.attempts >= most and not pending.future.done():
                pending.future.set_exception(
                    JudgeDiedError(f"the judge process died {most} times on this subject")
                )

    def _take(self, frame: msgspec.Struct, child: Child, waiting: asyncio.TaskGroup) -> None:
        if isinstance(frame, ReserveBudget):
            waiting.create_task(self._reserve(frame, child))
        elif isinstance(frame, CallFinished):
            self._finish(frame)
        elif isinstance(frame, CacheFailed):
            self._note_failure(frame.reason, frame.message)
        elif isinstance(frame, JobDone):
            pending = self._pending.get(frame.id)
            if pending is not None and not pending.future.done():
                pending.future.set_result(frame)

    async def _reserve(self, request: ReserveBudget, child: Child) -> None:
        """Answer when the call may be made, or must not be: the budget is spent, or the job is gone."""
        granted = False
        pending = self._pending.get(request.job)
        if pending is not None:
            await self._turn_of(pending)
            granted = request.job in self._pending and self._grant(request, pending.job.service)
        child.send(encode(BudgetReply(id=request.id, granted=granted)))

    async def _turn_of(self, pending: _Pending) -> None:
        """Wait until the budget allows the job another call. Whose subject is under way wants calls, too."""
        pending.awaits_budget += 1
        try:
            while (wait := self._wait(pending.job.service)) > 0:  # noqa: ASYNC110 - time is what it waits for
                await asyncio.sleep(wait)
        finally:
            pending.awaits_budget -= 1

    def _wait(self, service: str) -> float:
        under_way = {each.job.service for each in self._pending.values()}
        return self.budget.wait(self._clock(), service, under_way)

    def _grant(self, request: ReserveBudget, service: str) -> bool:
        if not self.budget.reserve(self._clock(), request.usd, service):
            self._families.requests.labels(self._model, "budget_denied").inc()
            return False
        self._reserved[request.id] = _Reservation(service, request.usd)
        return True

    def _finish(self, call: CallFinished) -> None:
        service, reserved = self._reserved.pop(call.id, _Reservation("", 0.0))
        usd = reserved if call.keep_reservation else call.usd or 0.0
        self.budget.settle(self._clock(), service, reserved=reserved, usd=usd)
        families, model = self._families, call.model
        families.requests.labels(model, call.result).inc()
        families.request_duration.labels(model).observe(call.seconds)
        families.tokens.labels(model, "input").inc(call.input_tokens)
        families.tokens.labels(model, "output").inc(call.output_tokens)
        families.cost.labels(model).inc(call.usd or 0.0)
