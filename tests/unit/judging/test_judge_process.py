"""The keeper of the judge process, over children that a test decides."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, ClassVar, Self

import msgspec
import pytest

from collector.base.clock import Clock
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.judging import judge_process
from collector.judging.budget import DAY, Budget
from collector.judging.judge_process import JudgeProcess
from collector.judging.port import JudgeLateError, ReserveBudget, TraceJob, encode
from tests.support.counted import counted
from tests.support.judging_stand import PLAN


class DyingChild:
    """Wants a call for the job it is given, and dies of it."""

    started: ClassVar[int] = 0

    def __init__(self, *_: object, **__: object) -> None:
        self.pid = 1
        self.has_ended = False
        self.was_interrupted = False
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        type(self).started += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.has_ended = True

    def send(self, payload: bytes) -> None:
        if b"trace" in payload:
            self._frames.put_nowait(encode(ReserveBudget(id=0, job=0, usd=0.25)))
        else:
            self._frames.put_nowait(None)  # it has leave now: the call is under way

    async def receive(self) -> bytes:
        frame = await self._frames.get()
        if frame is None:
            raise EOFError
        return frame

    def kill(self) -> None:
        self.has_ended = True


def judges_of(
    config: Config, budget: Budget, *, clock: Clock = lambda: 1e9, **more: Any
) -> JudgeProcess:
    """One that starts a process again at once."""

    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    telemetry = more.pop("telemetry", Telemetry())
    return JudgeProcess(
        config, budget=budget, telemetry=telemetry, clock=clock, sleep=at_once, **more
    )


def trace_job(number: int = 0) -> TraceJob:
    return TraceJob(id=number, owner="o", service="desk", trace=msgspec.Raw(b"\x80"))


@asynccontextmanager
async def running(judges: JudgeProcess) -> AsyncGenerator[None]:
    """While it runs, for twenty seconds at most."""
    run = asyncio.ensure_future(judges.run())
    try:
        async with asyncio.timeout(20):
            yield
    finally:
        run.cancel()


async def test_three_deaths_on_a_subject_end_it_and_its_calls_count_as_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge_process, "Child", DyingChild)
    DyingChild.started = 0
    budget = Budget(usd_per_day=1.0, calls_per_minute=60)
    judged = [each for each in PLAN.judged if each.spec.name == "helpfulness"]
    judges = judges_of(Config(), budget, judged=judged)
    async with running(judges):
        done = await judges.judge(trace_job())
    (outcome,) = done.outcomes
    assert outcome.error
    assert (outcome.error.type, "3 times" in outcome.error.message) == ("judge_died", True)
    assert DyingChild.started == 3
    assert budget.remaining(1e9) == pytest.approx(1.0 - 3 * 0.25)


def test_the_budget_is_shown_from_the_start_and_begins_again_at_midnight() -> None:
    now = [10.0]
    budget = Budget(usd_per_day=5.0, calls_per_minute=60)
    telemetry = Telemetry()
    judges_of(Config(), budget, telemetry=telemetry, clock=lambda: now[0])

    def shown(name: str) -> float:
        return counted(telemetry, f"judge_budget_{name}_usd", budget="usd_per_day")

    assert (shown("remaining"), shown("limit")) == (5.0, 5.0)
    budget.restore(5.0, "s", calls=1, usd=2.0, now=now[0])
    budget.share = 0.5
    assert (shown("remaining"), shown("limit")) == (0.5, 2.5)
    assert budget.reserve(now[0], 0.25, "s")
    now[0] = DAY - 0.001
    assert shown("remaining") == 0.25
    now[0] = DAY  # what is under way counts on the day on which it is settled, too
    assert (shown("remaining"), shown("limit")) == (2.25, 2.5)


def test_a_budget_without_limit_is_not_shown() -> None:
    telemetry = Telemetry()
    budget = Budget(usd_per_day=None, calls_per_minute=60)
    judges_of(Config(), budget, telemetry=telemetry)

    assert b"judge_budget_limit_usd{" not in telemetry.exposition("")[0]


class WaitingChild(DyingChild):
    """Wants a call for its job, and waits for leave."""

    killed: ClassVar[int] = 0

    def send(self, payload: bytes) -> None:
        if b"trace" in payload:
            self._frames.put_nowait(encode(ReserveBudget(id=0, job=0, usd=0.25)))

    def kill(self) -> None:
        type(self).killed += 1


@pytest.mark.parametrize(("calls_made", "killed"), [(60, 0), (0, 1)])
async def test_a_job_that_waits_for_budget_does_not_hang(
    monkeypatch: pytest.MonkeyPatch, calls_made: int, killed: int
) -> None:
    """It is late all the same; a process that is waited for otherwise is replaced, with all its jobs."""
    monkeypatch.setattr(judge_process, "Child", WaitingChild)
    WaitingChild.killed = 0
    budget = Budget(usd_per_day=None, calls_per_minute=60)
    budget.restore(1e9, "desk", calls=calls_made, usd=0.0, now=1e9)
    config = Config.model_validate({"judge": {"max_lag": 0.2}})
    judges = judges_of(config, budget)
    async with running(judges):
        with pytest.raises(JudgeLateError):
            await judges.judge(trace_job())
    assert WaitingChild.killed == killed
