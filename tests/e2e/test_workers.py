"""Workers that die or hang on a trace, as a bug of ours would make them: real processes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.msgpack import decode

from collector.base.telemetry import Telemetry
from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.otlp.split import split_by_trace
from collector.reading.port import ReadJob
from collector.reading.processes import ProcessWorkers
from collector.records.trace_outcomes import TraceOutcomes
from evaluators.model import Outcome
from tests.support import plugin
from tests.support.asking import asked, trace_id
from tests.support.eventually import eventually
from tests.support.sender import send
from tests.support.service import Service, children

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

# The model is not needed here and would make every restart slower.
CONFIG = Config.model_validate({"embedder": {"kind": "none"}})


def job(question: str) -> ReadJob:
    """A trace that was asked this."""
    request = asked(question, question)
    id_ = bytes.fromhex(trace_id(question))
    pieces = split_by_trace(request, max_item=1 << 22).pieces
    (piece,) = (each.value for each in pieces)
    return ReadJob(trace_id=id_, pieces=(piece,), closed="root_ended", service="bot")


async def scored(pool: ProcessWorkers, *jobs: ReadJob) -> list[tuple[Outcome, ...]]:
    """What evaluators say of each."""
    read = await pool.read(jobs)
    return [decode(each.outcomes, type=TraceOutcomes).outcomes for each in read]


@pytest.fixture
async def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessWorkers]:
    monkeypatch.setenv("PYTHONPATH", str(plugin.obeying_reader(tmp_path / "installed")))
    plan = plan_from(CONFIG)
    pool = ProcessWorkers(config=CONFIG, plan=plan, count=1, telemetry=Telemetry(), job_timeout=5.0)
    pool.start()
    yield pool
    await pool.close()


def restarts(pool: ProcessWorkers, reason: str) -> float:
    samples = [sample for metric in pool._restarts.collect() for sample in metric.samples]
    return sum(
        each.value
        for each in samples
        if each.name.endswith("_total") and each.labels["reason"] == reason
    )


def error_types(outcomes: Sequence[Outcome]) -> set[str | None]:
    return {each.error.type if each.error else None for each in outcomes}


async def test_a_trace_that_kills_its_worker_twice_is_given_up(workers: ProcessWorkers) -> None:
    deadly, harmless = await scored(workers, job("die"), job("hello"))

    assert error_types(deadly) == {"worker_died"}
    assert {each.state for each in deadly} == {"failed"}
    assert "worker_died" not in error_types(harmless)
    await eventually(lambda: restarts(workers, "died") == 2)


async def test_a_trace_whose_worker_died_once_is_scored_again(
    workers: ProcessWorkers, tmp_path: Path
) -> None:
    (outcomes,) = await scored(workers, job(f"die-once {tmp_path / 'mark'}"))

    assert "worker_died" not in error_types(outcomes)
    assert restarts(workers, "died") == 1


async def test_a_worker_that_hangs_is_killed_and_its_trace_given_up_the_second_time(
    workers: ProcessWorkers,
) -> None:
    stuck, harmless = await scored(workers, job("sleep 60"), job("hello"))

    assert error_types(stuck) == {"worker_died"}
    assert "worker_died" not in error_types(harmless)
    await eventually(lambda: restarts(workers, "hung") == 2)


async def test_a_worker_killed_while_scoring_is_replaced(
    workers: ProcessWorkers, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    async with asyncio.TaskGroup() as tasks:
        scoring = tasks.create_task(scored(workers, job(f"mark-once {begun}"), job("hello")))
        await eventually(begun.exists)
        os.kill(workers.pids[0], signal.SIGKILL)

    for outcomes in scoring.result():
        assert "worker_died" not in error_types(outcomes)
    assert restarts(workers, "died") == 1


def test_the_service_survives_what_kills_its_workers(tmp_path: Path) -> None:
    installed = plugin.obeying_reader(tmp_path / "installed")
    begun = tmp_path / "begun"
    settings = ("windows.trace.root_grace=300ms", "embedder.kind=none")
    with Service(
        tmp_path / "data", *settings, environment={"PYTHONPATH": str(installed)}
    ) as service:
        send(service.grpc, asked("deadly", "die"), asked("slow", f"mark {begun}"))
        service.wait_for("the worker scores", begun.exists)

        for child in children(service.pid):
            os.kill(child, signal.SIGKILL)
        begun.unlink()
        service.wait_for("another worker scores", begun.exists)
        for child in children(service.pid):
            os.kill(child, signal.SIGKILL)
        send(service.grpc, asked("good", "hello"))
        service.wait_for("all three traces have signals", lambda: len(scored_by(service)) == 3)

        fates = scored_by(service)
        assert fates[trace_id("deadly")] == {("failed", "worker_died")}
        assert fates[trace_id("slow")] == {("failed", "worker_died")}
        assert {outcome for outcome, _ in fates[trace_id("good")]} >= {"scored"}
        assert service.metrics()['spanwise_worker_restarts_total{reason="died"}'] == 4
        assert service.get("/healthz") is not None


def scored_by(service: Service) -> dict[str, set[tuple[str, str | None]]]:
    """Trace id -> its outcomes with their error types."""
    found: dict[str, set[tuple[str, str | None]]] = {}
    for each in service.signals():
        if each["scope"] == "trace":
            kind = each["error"] and each["error"]["type"]
            found.setdefault(each["trace_id"], set()).add((each["outcome"], kind))
    return found


async def test_a_job_that_hung_is_tried_again_after_those_that_wait(
    workers: ProcessWorkers,
) -> None:
    order: list[str] = []

    async def score(question: str) -> None:
        await scored(workers, job(question))
        order.append(question)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(score("sleep 60"))
        await asyncio.sleep(0)
        for _ in range(3):
            tasks.create_task(score("sleep 0.1"))
        tasks.create_task(score("sleep 61"))

    assert order[:3] == ["sleep 0.1"] * 3


ECHOES = """
from evaluators import History, Score, Trace, evaluator


@evaluator(version="1")
def echoes(trace: Trace, *, history: History) -> Score:
    return Score(value=len(history.previous) / 3, explanation=" | ".join(each.input for each in history.previous))
"""


def test_an_evaluator_that_reads_the_texts_before_is_scored_by_a_verdict(tmp_path: Path) -> None:
    installed = plugin.install(tmp_path / "installed", ECHOES)
    settings = ("windows.trace.root_grace=100ms", "embedder.kind=none")
    with Service(
        tmp_path / "data", *settings, environment={"PYTHONPATH": str(installed)}
    ) as service:

        def echoes() -> list[tuple[float | None, str | None]]:
            found = [each for each in service.signals() if each["evaluator"] == "this_test/echoes"]
            return [(each["score"], each["explanation"]) for each in found if each["final"]]

        send(service.grpc, asked("talk", "Where is it?"))
        service.wait_for("the first turn is scored", lambda: len(echoes()) == 1)
        send(service.grpc, asked("talk", "And now?", number=1))
        service.wait_for("the second one, too", lambda: len(echoes()) == 2)

        assert echoes() == [(0.0, ""), (0.3333, "Where is it?")]
