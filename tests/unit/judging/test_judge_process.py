"""The keeper of a judge process, over children that a test decides: who dies, hangs, or holds up the others."""

import asyncio
import faulthandler
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self
from unittest.mock import Mock

import msgspec
import pytest

from collector.base.clock import Clock
from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.judging import judge_process
from collector.judging.budget import DAY, Budget
from collector.judging.judge_process import JudgeProcess
from collector.judging.port import (
    RUNNING,
    JobDone,
    JudgeLateError,
    ReserveBudget,
    TraceJob,
    decode_to_judge,
    encode,
)
from collector.judging.running import JOB, Watchdog
from collector.service.rooms import JudgesOfPackages, Rooms
from evaluators import Judge, Score, Trace, evaluator
from evaluators.declare import declared
from evaluators.plan import Configured, Plan
from evaluators.run import settle
from tests.support.counted import counted
from tests.support.faulty_log import FaultyLog
from tests.support.judging_stand import PLAN
from tests.support.reading import ReadingWorkers

Script = Callable[[bytes], Sequence[bytes | None]]
LEAVE = encode(ReserveBudget(id=0, job=0, usd=0.25))


class ScriptedChild:
    """Sends what `script` answers to what it is sent, and dies of None."""

    script: ClassVar[Script]
    started: ClassVar[int] = 0
    killed: ClassVar[int] = 0

    def __init__(self, *_: object, **__: object) -> None:
        self.pid = 1
        self.has_ended = False
        self.was_interrupted = False
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        type(self).started += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.has_ended = True

    def send(self, payload: bytes) -> None:
        for frame in type(self).script(payload):
            self._frames.put_nowait(frame)

    async def receive(self) -> bytes:
        frame = await self._frames.get()
        if frame is None:
            raise EOFError
        return frame

    def kill(self) -> None:
        type(self).killed += 1


def follow(monkeypatch: pytest.MonkeyPatch, script: Script) -> None:
    """Every child of a judge process follows this script."""
    monkeypatch.setattr(judge_process, "Child", ScriptedChild)
    monkeypatch.setattr(ScriptedChild, "script", staticmethod(script), raising=False)
    ScriptedChild.started = ScriptedChild.killed = 0


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
    """It dies once it has leave: the call is under way."""
    follow(monkeypatch, lambda payload: [LEAVE if b"trace" in payload else None])
    budget = Budget(usd_per_day=1.0, calls_per_minute=60)
    judged = [each for each in PLAN.judged if each.spec.name == "helpfulness"]
    judges = judges_of(Config(), budget, judged=judged)
    async with running(judges):
        (outcome,) = (await judges.judge(trace_job())).outcomes
    assert outcome.error
    assert (outcome.error.type, "3 times" in outcome.error.message) == ("judge_died", True)
    assert ScriptedChild.started == 3
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
    unlimited = Telemetry()
    judges_of(Config(), Budget(usd_per_day=None, calls_per_minute=60), telemetry=unlimited)
    assert b"judge_budget_limit_usd{" not in unlimited.exposition("")[0]


@pytest.mark.parametrize(("calls_made", "killed"), [(60, 0), (0, 1)])
async def test_a_job_that_waits_for_budget_does_not_hang(
    monkeypatch: pytest.MonkeyPatch, calls_made: int, killed: int
) -> None:
    """It is late all the same; a process that is waited for otherwise is replaced, with all its jobs."""
    follow(monkeypatch, lambda payload: [LEAVE] if b"trace" in payload else [])
    budget = Budget(usd_per_day=None, calls_per_minute=60)
    budget.restore(1e9, "desk", calls=calls_made, usd=0.0, now=1e9)
    config = Config.model_validate({"judge": {"max_lag": 0.2}})
    judges = judges_of(config, budget)
    async with running(judges):
        with pytest.raises(JudgeLateError):
            await judges.judge(trace_job())
    assert ScriptedChild.killed == killed


# --- third parties' evaluators: who ended or held up their process, and what the others lose: nothing -----------------


NAMES = ("mine/bad", "mine/good")


def configured(name: str) -> Configured:
    @evaluator(version="1")
    async def asks(trace: Trace, *, judge: Judge) -> Score:
        await asyncio.sleep(0)
        return Score(value=1.0)

    spec = declared(asks)
    assert spec is not None
    spec = replace(spec, name=name, method="custom")
    return Configured(spec=spec, options={}, threshold=None, options_digest="")


def function_of(watch: Watchdog, name: str, function: Any) -> Any:
    """The function of that evaluator as the child calls it for job 7."""
    made = configured(name)
    JOB.set(7)
    return watch.watched(replace(made, spec=replace(made.spec, function=function))).spec.function


class Bad:
    """`mine/bad`: a child dies of it, which it has noted, and answers jobs without it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "judge-cache-mine"
        self.folder.mkdir()
        self.note = "{job} {now} mine/bad"

    def script(self, payload: bytes) -> list[bytes | None]:
        job = decode_to_judge(payload)
        assert isinstance(job, TraceJob)
        if "mine/bad" not in job.without:
            note = self.note.format(job=job.id, now=time.monotonic())
            (self.folder / RUNNING).write_text(note.ljust(512, "\0"))
            return [None]
        outcomes = tuple(settle(configured(each), 1.0) for each in NAMES if each not in job.without)
        return [encode(JobDone(id=job.id, outcomes=outcomes, calls=1, cost_usd=0))]


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bad:
    made = Bad(tmp_path)
    follow(monkeypatch, made.script)
    return made


@pytest.fixture
def judges(bad: Bad) -> JudgeProcess:
    return judges_of(
        Config.model_validate({"data_dir": str(bad.folder.parent)}),
        Budget(usd_per_day=1.0, calls_per_minute=60),
        judged=[configured(each) for each in NAMES],
        package="mine",
    )


async def ends(judges: JudgeProcess, jobs: int) -> list[dict[str, str | None]]:
    """Of each job, asked one behind the other, by evaluator the type of its error."""
    async with running(judges):
        done = [await judges.judge(trace_job(number)) for number in range(jobs)]
    return [{o.evaluator: o.error and o.error.type for o in each.outcomes} for each in done]


async def test_the_one_that_ran_is_named_and_switched_off_alone(
    judges: JudgeProcess, caplog: pytest.LogCaptureFixture
) -> None:
    found = await ends(judges, 5)

    assert [each["mine/bad"] for each in found] == ["worker_died"] * 3 + ["switched_off"] * 2
    assert [each["mine/good"] for each in found] == [None] * 5
    assert judges._switch.off == {"mine/bad"}
    assert caplog.text.count("Evaluator `mine/bad` ended its process on a trace of `desk`") == 3
    assert caplog.text.count("Evaluator `mine/bad` is switched off") == 1


@pytest.mark.parametrize(
    ("note", "first", "off"),
    [
        ("{job} 0.0 mine/bad", {"mine/good": None, "mine/bad": "timeout"}, set[str]()),
        ("", dict.fromkeys(NAMES, "judge_died"), {*NAMES}),
    ],
    ids=["it ran for all of its time", "it cannot be said who it was"],
)
async def test_what_its_note_says_of_the_one_that_ran(
    bad: Bad, judges: JudgeProcess, note: str, first: dict[str, str | None], off: set[str]
) -> None:
    bad.note = note

    assert await ends(judges, 1) == [first]
    assert judges._switch.off == off


async def test_what_runs_is_in_the_file_only_while_it_runs(tmp_path: Path) -> None:
    watch = Watchdog(tmp_path, {"mine/slow": 10.0})
    noted: list[str] = []

    def read() -> str:
        return (tmp_path / RUNNING).read_text().rstrip("\0")

    async def steps(_: object) -> float:
        noted.append(read())
        await asyncio.sleep(0)
        noted.append(read())
        return 0.5

    waits = asyncio.ensure_future(function_of(watch, "mine/slow", steps)(None))
    while not waits.done():
        await asyncio.sleep(0)
        assert read() == ""

    assert waits.result() == 0.5
    assert [each.split(" ")[::2] for each in noted] == [["7", "mine/slow"]] * 2


async def test_one_that_waits_for_something_else_than_the_judge_has_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a step may take .2 s, and the timer would end the process of the tests.
    monkeypatch.setattr(faulthandler, "dump_traceback_later", Mock())
    watch = Watchdog(tmp_path, {"mine/waits": 0.2})

    async def waits(_: object) -> float:
        await asyncio.Event().wait()
        return 0.5

    with pytest.raises(TimeoutError, match=r"no answer within 0\.2 s"):
        await function_of(watch, "mine/waits", waits)(None)

    assert watch.late == {7: ["mine/waits"]}


def test_each_third_party_has_a_judge_process_and_all_have_one_budget() -> None:
    ours, *theirs = (configured(each) for each in ("helpful", "mine/asks", "other/asks"))
    ours = replace(ours, spec=replace(ours.spec, method="llm_judge"))
    rooms = Rooms(
        Config(),
        Plan(judged=(ours, *theirs)),
        log=FaultyLog(),
        workers=ReadingWorkers(),
        telemetry=Telemetry(),
        clock=lambda: 1e9,
    )

    judges = rooms.judging()._judges, rooms.judging(plugins=True)._judges

    assert isinstance(judges[0], JudgeProcess)
    assert isinstance(judges[1], JudgesOfPackages)
    processes = (judges[0], *judges[1]._processes)
    assert [[*each._plugins] for each in processes] == [[], ["mine/asks"], ["other/asks"]]
    assert len({id(each.budget) for each in processes}) == 1
