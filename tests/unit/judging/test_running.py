"""Who ended or held up the judge process of third parties' evaluators, and what the others lose: nothing."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from collector.base.telemetry import Telemetry
from collector.config.tree import Config
from collector.judging import judge_process
from collector.judging.budget import Budget
from collector.judging.judge_process import JudgeProcess
from collector.judging.port import RUNNING, JobDone, TraceJob, decode_to_judge, encode
from collector.judging.running import JOB, Watchdog
from collector.service.rooms import JudgesOfPackages, Rooms
from evaluators import Judge, Score, Trace, evaluator
from evaluators.declare import declared
from evaluators.plan import Configured, Plan
from evaluators.run import settle
from tests.support.faulty_log import FaultyLog
from tests.support.reading import ReadingWorkers
from tests.unit.judging.test_judge_process import DyingChild, judges_of, running, trace_job

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


class BadChild(DyingChild):
    """Dies of `mine/bad`, which it has noted; answers jobs without it."""

    folder: ClassVar[Path]
    sent: ClassVar[list[tuple[int, tuple[str, ...]]]]
    note: ClassVar[str] = "{job} {now} mine/bad"

    def send(self, payload: bytes) -> None:
        job = decode_to_judge(payload)
        assert isinstance(job, TraceJob)
        self.sent.append((job.id, job.without))
        due = [configured(each) for each in NAMES if each not in job.without]
        if "mine/bad" not in job.without:
            note = self.note.format(job=job.id, now=time.monotonic())
            (self.folder / RUNNING).write_text(note.ljust(512, "\0"))
            self._frames.put_nowait(None)
            return
        outcomes = tuple(settle(each, 1.0) for each in due)
        self._frames.put_nowait(encode(JobDone(id=job.id, outcomes=outcomes, calls=1, cost_usd=0)))


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JudgeProcess:
    monkeypatch.setattr(judge_process, "Child", BadChild)
    BadChild.started, BadChild.sent, BadChild.folder = 0, [], tmp_path / "judge-cache-mine"
    BadChild.folder.mkdir()
    return judges_of(
        Config.model_validate({"data_dir": str(tmp_path)}),
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


async def test_one_that_ran_for_all_of_its_time_took_too_long(
    judges: JudgeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BadChild, "note", "{job} 0.0 mine/bad")

    (found,) = await ends(judges, 1)

    assert found == {"mine/good": None, "mine/bad": "timeout"}


async def test_where_it_cannot_be_said_who_it_was_it_may_be_any_of_them(
    judges: JudgeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BadChild, "note", "")

    assert await ends(judges, 1) == [dict.fromkeys(NAMES, "judge_died")]
    assert judges._switch.off == set(NAMES)
    assert await ends(judges, 1) == [dict.fromkeys(NAMES, "switched_off")]


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
    tmp_path: Path,
) -> None:
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
