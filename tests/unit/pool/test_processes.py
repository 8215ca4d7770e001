"""The pool of workers at a stop, with no process started: no job is answered."""

from __future__ import annotations

import asyncio

import pytest

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.errors import Retryable
from collector.pool.port import ScoreJob
from collector.pool.processes import ProcessWorkers
from collector.telemetry import Telemetry
from evaluators.model import Trace

CONFIG = Config.model_validate({"embedder": {"kind": "none"}})


def job() -> ScoreJob:
    return ScoreJob(
        trace=Trace(
            trace_id="1" * 32,
            service="bot",
            agent="bot",
            session_id="s",
            session_source="session.id",
            closed="root_ended",
        )
    )


async def test_jobs_that_are_not_answered_at_a_stop_fail_and_wait_in_the_log() -> None:
    pool = ProcessWorkers(CONFIG, plan_from(CONFIG), count=1, telemetry=Telemetry())
    asked = asyncio.ensure_future(pool.score([job(), job()]))
    await asyncio.sleep(0)

    pool.hasten(within=0.0)

    async with asyncio.timeout(5):
        with pytest.raises(Retryable):
            await asked
        with pytest.raises(Retryable):
            await pool.score([job()])
    await pool.close()


async def test_a_caller_that_is_cancelled_is_cancelled() -> None:
    pool = ProcessWorkers(CONFIG, plan_from(CONFIG), count=1, telemetry=Telemetry())
    asked = asyncio.ensure_future(pool.score([job()]))
    await asyncio.sleep(0)

    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked
    await pool.close()
