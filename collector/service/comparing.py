"""Evaluators that compare a trace with the texts of those before it, answered by workers: verdicts without a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from collector.judging.port import Job, JobDone, TraceJob
from collector.reading.port import CompareJob, Workers
from evaluators.model import Failure, Outcome
from evaluators.plan import Configured
from evaluators.run import failed


class ComparingWorkers:
    """The `Judges` port over workers.

    Args:
        workers: Run the evaluators.
        due: The evaluators.
    """

    def __init__(self, workers: Workers, due: Sequence[Configured]) -> None:
        self._workers = workers
        self._due = due

    async def judge(self, make: Callable[[int], Job]) -> JobDone:
        """It is asked about traces alone."""
        job = make(0)
        assert isinstance(job, TraceJob)  # noqa: S101 - no evaluator of sessions compares texts
        asked = CompareJob(trace=job.trace, history=job.history, turn=job.turn, service=job.service)
        outcomes = await self._workers.compare(asked)
        return JobDone(
            id=job.id,
            outcomes=self._died() if outcomes is None else outcomes,
            calls=0,
            cost_usd=0.0,
        )

    def _died(self) -> tuple[Outcome, ...]:
        error = Failure(type="worker_died", message="the worker died or hung twice on this trace")
        return tuple(failed(each, error) for each in self._due)

    def written(self, done: JobDone) -> None:
        """See the port: nothing is kept for a job."""

    async def run(self) -> None:
        """The workers run by themselves."""
        await asyncio.Event().wait()
