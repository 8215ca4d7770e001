"""Traces that take long: others are scored and committed past them, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from collector.base.telemetry import Telemetry
from collector.log.port import SIGNALS, TRACES
from collector.reading.port import ScoreJob
from collector.scoring import backlog
from evaluators.model import Outcome
from tests.support.eventually import eventually
from tests.support.faulty_log import FaultyLog
from tests.support.scoring_fakes import (
    FakeWorkers,
    append,
    counted,
    make_record,
    make_scorer,
    run_to_end,
    scored_log,
    shown,
)
from tests.support.signals import jsons_in


class StuckWorkers(FakeWorkers):
    """Answers traces of the service `slow` once the gate is open, the others at once."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def score(self, jobs: Sequence[ScoreJob]) -> Sequence[tuple[Outcome, ...]]:
        if jobs[0].service == "slow":
            await self.gate.wait()
        return await super().score(jobs)


@pytest.fixture
def log() -> FaultyLog:
    return scored_log()


def scored(log: FaultyLog, service: str) -> set[str | None]:
    return {each.trace_id for each in shown(log, "confidence") if each.service == service}


async def test_one_services_traces_hold_up_no_other_service(log: FaultyLog) -> None:
    for n in range(300):
        append(log, make_record(f"s{n}", service="slow", session=f"s{n % 70}"))
    for n in range(50):
        append(log, make_record(f"g{n}", service="good", session=f"s{n % 5}"))
    workers, telemetry = StuckWorkers(), Telemetry()
    stopping = asyncio.Event()
    running = asyncio.ensure_future(
        make_scorer(log, workers=workers, telemetry=telemetry, patience=0.01).run(stopping)
    )

    await eventually(lambda: len(scored(log, "good")) == 50)

    assert scored(log, "slow") == set()
    assert counted(telemetry, "records_waiting") == 300
    workers.gate.set()
    await eventually(lambda: len(scored(log, "slow")) == 300)
    stopping.set()
    await running


async def test_the_commit_stays_before_what_is_under_way_and_a_restart_repeats_nothing(
    log: FaultyLog,
) -> None:
    append(log, make_record("s", service="slow"))
    for n in range(9):
        append(log, make_record(f"g{n}", service="good", start=n))
    await run_to_end(make_scorer(log, workers=StuckWorkers(), patience=0.01), log)
    assert len(scored(log, "good")) == 9
    assert not any(commits for _, commits in log.calls)

    await make_scorer(log).drain()

    calm = scored_log()
    for record in log.history(TRACES)[:10]:
        calm.skip_to(record.position.offset, TRACES)
        calm.append(TRACES, record.value, key=record.key)
    await make_scorer(calm).drain()
    assert sorted(jsons_in(log.history(SIGNALS))) == sorted(jsons_in(calm.history(SIGNALS)))


async def test_what_was_let_go_is_read_again(
    log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "WAITING_BYTES", 0)
    for n in range(5):
        append(log, make_record(f"t{n}", session=f"s{n}"))

    await run_to_end(make_scorer(log), log)

    assert len(scored(log, "bot")) == 5


async def test_what_was_let_go_and_has_expired_is_counted(
    log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "WAITING_BYTES", 0)
    telemetry, workers = Telemetry(), StuckWorkers()
    for n in range(2):
        append(log, make_record(f"t{n}", service="slow"))
    stopping = asyncio.Event()
    running = asyncio.ensure_future(
        make_scorer(log, workers=workers, telemetry=telemetry, patience=0.01).run(stopping)
    )
    await eventually(lambda: counted(telemetry, "records_waiting") == 2)

    log.expire(log.history(TRACES)[1].position)
    workers.gate.set()

    await eventually(
        lambda: counted(telemetry, "trace_records_dropped_total", reason="expired") == 1
    )
    stopping.set()
    await running


async def test_so_many_records_wait_and_no_more_are_read(
    log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.scoring.scorer.WAITING", 40)
    for n in range(200):
        append(log, make_record(f"s{n}", service="slow"))
    workers, telemetry = StuckWorkers(), Telemetry()
    stopping = asyncio.Event()
    running = asyncio.ensure_future(
        make_scorer(log, workers=workers, telemetry=telemetry, patience=0.01).run(stopping)
    )

    await eventually(lambda: counted(telemetry, "records_waiting") >= 40)
    await asyncio.sleep(0.2)

    assert counted(telemetry, "records_waiting") < 40 + 32
    workers.gate.set()
    await eventually(lambda: len(scored(log, "slow")) == 200)
    stopping.set()
    await running
