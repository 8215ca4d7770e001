"""Workers that die or hang on a trace, as a bug of ours would make them: real processes."""

import asyncio
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
from tests.support.clocks import eventually

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
    samples = (sample for metric in pool._restarts.collect() for sample in metric.samples)
    return sum(
        each.value
        for each in samples
        if each.name.endswith("_total") and each.labels["reason"] == reason
    )


def error_types(outcomes: Sequence[Outcome]) -> set[str | None]:
    return {each.error.type if each.error else None for each in outcomes}


@pytest.mark.parametrize(("order", "reason"), [("die", "died"), ("sleep 60", "hung")])
async def test_a_trace_that_ends_its_worker_twice_is_given_up(
    workers: ProcessWorkers, order: str, reason: str
) -> None:
    fatal, harmless = await scored(workers, job(order), job("hello"))

    assert error_types(fatal) == {"worker_died"}
    assert {each.state for each in fatal} == {"failed"}
    assert "worker_died" not in error_types(harmless)
    await eventually(lambda: restarts(workers, reason) == 2)


async def test_a_trace_whose_worker_died_once_is_scored_again(
    workers: ProcessWorkers, tmp_path: Path
) -> None:
    (outcomes,) = await scored(workers, job(f"die-once {tmp_path / 'mark'}"))

    assert "worker_died" not in error_types(outcomes)
    assert restarts(workers, "died") == 1


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
