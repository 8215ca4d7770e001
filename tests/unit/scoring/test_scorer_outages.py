"""Scoring while the log refuses, and records that can never be processed."""

import asyncio

import pytest

from collector.base.errors import LogFull
from collector.base.telemetry import Telemetry
from collector.log.port import SESSIONS, SIGNALS, TRACES
from tests.support.counted import counted
from tests.support.faulty_log import FaultyLog, unavailable
from tests.support.scoring_fakes import (
    append,
    append_bytes,
    make_record,
    make_scorer,
    run_to_end,
    scored_log,
    shown,
)


@pytest.fixture
def log() -> FaultyLog:
    return scored_log()


async def test_a_full_log_is_tried_again_and_state_applied_once(log: FaultyLog) -> None:
    append(log, make_record("t1"))
    log.write_failures = [LogFull("full")] * 3

    await make_scorer(log).drain()

    assert len(shown(log, "confidence")) == 1
    assert len([each for each in shown(log, "latency") if each.final]) == 1


async def test_a_log_that_does_not_answer_is_asked_again(log: FaultyLog) -> None:
    append(log, make_record("t1", start=1))
    await run_to_end(make_scorer(log), log)
    append(log, make_record("t0", start=0))
    log.get_failures = unavailable(2)

    await run_to_end(make_scorer(log), log)

    assert len([each for each in shown(log, "loop_detection") if each.trace_id == "t1"]) == 2


async def test_a_stop_while_the_log_is_full_loses_nothing(log: FaultyLog) -> None:
    append(log, make_record("t1"))
    log.write_failures = [LogFull("full")] * 2
    stopping = asyncio.Event()

    async def pause(_seconds: float) -> None:
        stopping.set()

    await make_scorer(log, pause=pause).run(stopping)
    assert not log.history(SIGNALS)

    await make_scorer(log).drain()

    assert len(shown(log, "confidence")) == 1


async def test_poison_is_named_counted_and_passed_over(
    log: FaultyLog, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = Telemetry()
    append_bytes(log, b"bot\0s", b"\xff\xff")
    append_bytes(log, b"no session key", b"\xc1")
    append(log, make_record("t1"))
    append_bytes(log, b"nonsense", log.history(TRACES)[-1].value)

    await run_to_end(make_scorer(log, telemetry=telemetry), log)

    assert counted(telemetry, "poison_records_total", topic="traces") == 3
    assert "`traces`, partition 0, offset 100" in caplog.text
    assert len(shown(log, "confidence")) == 1


async def test_a_record_too_large_is_dropped_and_the_rest_written(log: FaultyLog) -> None:
    telemetry = Telemetry()
    append(log, make_record("t1"))
    log.largest = {SESSIONS: 0}

    await run_to_end(make_scorer(log, telemetry=telemetry), log)

    assert len(shown(log, "confidence")) == 1
    assert counted(telemetry, "poison_records_total", topic="sessions") > 0
    assert log.committed("scoring", TRACES, 0).offset == 1
