"""The judge process, kept: started, given jobs, granted calls, replaced when it dies or hangs.

The budget lives here and not in the child, so that a kill of the child loses no spend: what was granted and not settled
counts as spent.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

import msgspec
from pydantic import SecretStr

from collector.clock import Clock
from collector.config.tree import Config
from collector.judging.budget import Budget
from collector.judging.errors import JudgeDiedError, JudgeLateError
from collector.judging.frames import (
    Done,
    Grant,
    Job,
    Settled,
    Setup,
    Want,
    Written,
    decode_from_judge,
    encode,
)
from collector.runtime.child import MAX_PAUSE, Child, restart_pause
from collector.telemetry import Telemetry

log = logging.getLogger(__name__)

START_TIMEOUT = 120.0
MAX_ATTEMPTS = 3
PERIOD = "usd_per_day"


def _plain(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


class _Pending:
    """A job and who waits for it."""

    __slots__ = ("attempts", "future", "job")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.attempts = 0
        self.future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()


class JudgeProcess:
    """The `Judges` port over one child process. Jobs are bounded by the room, which waits for them."""

    def __init__(
        self,
        config: Config,
        *,
        budget: Budget,
        telemetry: Telemetry,
        clock: Clock,
        only: tuple[str, ...] | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        judge, embedder = config.judge, config.embedder
        self._setup = encode(
            Setup(
                config=config.model_dump_json(),
                api_key=_plain(judge.api_key),
                embedder_api_key=_plain(embedder.api_key),
                only=only,
            )
        )
        self._model = judge.model or ""
        self._patience = judge.max_lag
        self.budget = budget
        self._telemetry = telemetry
        self._clock = clock
        self._pause = pause
        self._numbers = itertools.count()
        self._pending: dict[int, _Pending] = {}
        self._reserved: dict[int, float] = {}
        self._child: Child | None = None
        self._wanted = asyncio.Event()
        self.pid: int | None = None
        """Of the child that runs now."""

    async def judge(self, make: Callable[[int], Job]) -> Done:
        """The verdict of a job, which is made with its number.

        Raises:
            JudgeDiedError: the process died on it too often.
            JudgeLateError: nothing came within `judge.max_lag`.
        """
        job = make(next(self._numbers))
        pending = self._pending[job.id] = _Pending(job)
        self._wanted.set()
        self._give(pending)
        try:
            async with asyncio.timeout(self._patience):
                return await pending.future
        except TimeoutError as error:
            if self._child is not None:
                self._child.kill()
            raise JudgeLateError from error
        finally:
            self._pending.pop(job.id, None)

    def written(self, done: Done) -> None:
        """The verdict is in the log."""
        if self._child is not None and not self._child.gone:
            self._child.send(encode(Written(id=done.id)))

    async def run(self) -> None:
        """Keep a judge process until cancelled; the first is started for the first job."""
        early_ends = 0
        await self._wanted.wait()
        while True:
            reason = "died"
            began = self._clock()
            try:
                async with Child("collector.judging.child", self._setup, START_TIMEOUT) as child:
                    await self._serve(child)
            except TimeoutError:
                reason = "hung"
            except (EOFError, OSError):
                pass
            finally:
                self._ended()
            self._telemetry.judge_restarts.labels(reason).inc()
            log.warning("the judge process %s, starting another", reason)
            early_ends = 0 if self._clock() - began > MAX_PAUSE else early_ends + 1
            await self._pause(restart_pause(early_ends))

    async def _serve(self, child: Child) -> None:
        self._child, self.pid = child, child.pid
        for pending in [*self._pending.values()]:
            self._give(pending)
        try:
            async with asyncio.TaskGroup() as waiting:
                while True:
                    self._take(decode_from_judge(await child.receive()), child, waiting)
        except* (EOFError, OSError) as ends:
            raise EOFError from ends

    def _give(self, pending: _Pending) -> None:
        if self._child is None or self._child.gone:
            return
        pending.attempts += 1
        self._child.send(encode(pending.job))

    def _ended(self) -> None:
        """Calls under way count as spent; their jobs are asked again by the next process."""
        self._child, self.pid = None, None
        for reserved in self._reserved.values():
            self.budget.settle(self._clock(), reserved=reserved, usd=reserved)
        self._reserved.clear()
        for pending in self._pending.values():
            if pending.attempts >= MAX_ATTEMPTS and not pending.future.done():
                pending.future.set_exception(
                    JudgeDiedError(f"the judge process died {MAX_ATTEMPTS} times on this subject")
                )

    def _take(self, frame: msgspec.Struct, child: Child, waiting: asyncio.TaskGroup) -> None:
        if isinstance(frame, Want):
            waiting.create_task(self._grant(frame, child))
        elif isinstance(frame, Settled):
            self._settle(frame)
        elif isinstance(frame, Done):
            pending = self._pending.get(frame.id)
            if pending is not None and not pending.future.done():
                pending.future.set_result(frame)

    async def _grant(self, want: Want, child: Child) -> None:
        while (wait := self.budget.wait(self._clock())) > 0:  # noqa: ASYNC110 - time is what it waits for
            await asyncio.sleep(wait)
        ok = self.budget.reserve(self._clock(), want.usd)
        if ok:
            self._reserved[want.id] = want.usd
        else:
            self._telemetry.judge_requests.labels(self._model, "budget_denied").inc()
        self.show()
        child.send(encode(Grant(id=want.id, ok=ok)))

    def _settle(self, settled: Settled) -> None:
        reserved = self._reserved.pop(settled.id, 0.0)
        usd = reserved if settled.kept else settled.usd or 0.0
        self.budget.settle(self._clock(), reserved=reserved, usd=usd)
        telemetry, model = self._telemetry, settled.model
        telemetry.judge_requests.labels(model, settled.result).inc()
        telemetry.judge_request_duration.labels(model).observe(settled.seconds)
        telemetry.judge_tokens.labels(model, "input").inc(settled.input_tokens)
        telemetry.judge_tokens.labels(model, "output").inc(settled.output_tokens)
        telemetry.judge_cost.labels(model).inc(settled.usd or 0.0)
        self.show()

    def show(self) -> None:
        """Set the budget's gauges."""
        remaining, limit = self.budget.remaining(self._clock()), self.budget.limit
        if remaining is not None and limit is not None:
            self._telemetry.judge_budget_remaining.labels(PERIOD).set(remaining)
            self._telemetry.judge_budget_limit.labels(PERIOD).set(limit)
